// SPDX-License-Identifier: GPL-2.0
/*
 * Two programs that send messages to each other, and mark the sends and receives.
 *
 *	cc -O2 -Inode/pbs-uapi/include -Iinclude/uapi samples/c/pbs_messages.c -o pbs_messages
 *	pbs_messages send|receive pipe|socket PATH MESSAGES
 *
 * The sender has a task for each message, which ends with the message.  The receiver
 * has one task more: each of its tasks but the first begins with a message.  PATH is
 * that of a named pipe, which either side makes, or of a Unix socket.  Without a plan
 * the programs simply do their work.  Both are to be started: each waits for the other.
 * samples/plans/messages.toml is a plan for them.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <sched_pbs/task.h>

struct message {
	unsigned int number;
	char text[60];
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void work(void)
{
	for (volatile int i = 0; i < 1000000; i++)
		;
}

/* The end of a named pipe: each side waits until the other one opens it, too. */
static int pipe_at(const char *path, int receives)
{
	int fd;

	if (mkfifo(path, 0600) && errno != EEXIST)
		fail(path);
	fd = open(path, (receives ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
	if (fd < 0)
		fail(path);
	return fd;
}

/* The end of a connection: the receiver waits for the sender. */
static int socket_at(const char *path, int receives)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail("socket");
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	if (receives) {
		unlink(path);
		if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1))
			fail(path);
		fd = accept(fd, NULL, NULL);
		if (fd < 0)
			fail("accept");
		return fd;
	}
	for (int tries = 0; connect(fd, (struct sockaddr *)&address, sizeof(address)); tries++) {
		if (tries == 1000)
			fail(path);
		usleep(10000);
	}
	return fd;
}

static void send_all(const struct sched_pbs_process *own, int fd, unsigned int messages)
{
	for (unsigned int number = 0; number < messages; number++) {
		struct message message = { .number = number, .text = "a message" };

		work();
		if (sched_pbs_send(own, fd, &message, sizeof(message)) != sizeof(message))
			fail("send");
		if (errno)
			fail("end of a task");
	}
}

static void receive_all(const struct sched_pbs_process *own, int fd, unsigned int messages)
{
	work();
	for (unsigned int number = 0; number < messages; number++) {
		struct message message;
		ssize_t part, received;

		received = sched_pbs_receive(own, fd, &message, sizeof(message));
		if (received > 0 && errno)
			fail("end of a task");
		/* Without a plan, a message may arrive in parts. */
		while (received > 0 && (size_t)received < sizeof(message)) {
			part = read(fd, (char *)&message + received, sizeof(message) - received);
			received = part > 0 ? received + part : -1;
		}
		if (received <= 0)
			fail("receive");
		if (message.number != number) {
			fprintf(stderr, "pbs_messages: message %u in the place of %u\n",
				message.number, number);
			exit(1);
		}
		printf("received %u\n", number);
		fflush(stdout);
		work();
	}
	if (sched_pbs_task_end(own, NULL))
		fail("end of the last task");
}

int main(int argc, char **argv)
{
	struct sched_pbs_process own;
	int receives, fd;

	if (argc != 5 || (strcmp(argv[1], "send") && strcmp(argv[1], "receive")) ||
	    (strcmp(argv[2], "pipe") && strcmp(argv[2], "socket"))) {
		fprintf(stderr, "pbs_messages send|receive pipe|socket PATH MESSAGES\n");
		return 2;
	}
	receives = !strcmp(argv[1], "receive");
	fd = strcmp(argv[2], "pipe") ? socket_at(argv[3], receives) : pipe_at(argv[3], receives);
	own = sched_pbs_attach();
	if (own.device < 0 && errno)
		fail("attach");
	if (receives)
		receive_all(&own, fd, atoi(argv[4]));
	else
		send_all(&own, fd, atoi(argv[4]));
	return 0;
}
