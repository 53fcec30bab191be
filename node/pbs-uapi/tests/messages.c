// SPDX-License-Identifier: GPL-2.0
/*
 * Sends and receives of sched_pbs/task.h: what they return, and when they mark the
 * end of a task.  The calls below stand in for those of the system where a script
 * says how the next ones end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the next calls do: bytes, or -errno; 'M' is the mark, in the order of calls. */
static const long *script;
static char calls[32];
static int mark_error;

static void called(char call)
{
	size_t length = strlen(calls);

	if (length + 1 < sizeof(calls))
		calls[length] = call;
}

static ssize_t next(void)
{
	long result = *script++;

	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

static ssize_t scripted_write(int fd, const void *bytes, size_t count)
{
	if (!script)
		return write(fd, bytes, count);
	called('W');
	return next();
}

static ssize_t scripted_read(int fd, void *bytes, size_t count)
{
	if (!script)
		return read(fd, bytes, count);
	called('R');
	return next();
}

static int scripted_ioctl(int fd, unsigned long request, void *argument)
{
	(void)fd;
	(void)request;
	(void)argument;
	called('M');
	if (!mark_error)
		return 0;
	errno = mark_error;
	return -1;
}

#define write scripted_write
#define read scripted_read
#define ioctl scripted_ioctl
#include <sched_pbs/task.h>
#undef write
#undef read
#undef ioctl

static const struct sched_pbs_process planned = { 1000, 7 };
static const struct sched_pbs_process unplanned = { -1, PBS_IDLE };

static void expect(int line, ssize_t result, ssize_t wanted, int error, const char *order)
{
	int found = errno;

	if (result == wanted && found == error && !strcmp(calls, order))
		return;
	fprintf(stderr, "line %d: %zd, errno %d, calls %s; not %zd, errno %d, calls %s\n", line,
		result, found, calls, wanted, error, order);
	exit(1);
}

static void begin(const long *results, int error)
{
	script = results;
	mark_error = error;
	memset(calls, 0, sizeof(calls));
	/* Of an earlier call. */
	errno = EDOM;
}

#define SEND(process, results, refusal, wanted, error, order)				\
	do {										\
		begin(results, refusal);						\
		expect(__LINE__, sched_pbs_send(process, 3, "message", 7), wanted,	\
		       error, order);							\
	} while (0)

#define RECEIVE(process, results, refusal, wanted, error, order)			\
	do {										\
		char buffer[7];								\
											\
		begin(results, refusal);						\
		expect(__LINE__, sched_pbs_receive(process, 3, buffer, 7), wanted,	\
		       error, order);							\
	} while (0)

static void sends(void)
{
	SEND(&planned, ((long[]){ 7 }), 0, 7, 0, "WM");
	SEND(&unplanned, ((long[]){ 7 }), 0, 7, 0, "W");
	/* What has begun to go out goes out whole. */
	SEND(&planned, ((long[]){ 3, -EINTR, -EINTR, 4 }), 0, 7, 0, "WWWWM");
	/* Nothing has gone out: as write(2), without a mark. */
	SEND(&planned, ((long[]){ -EINTR }), 0, -1, EINTR, "W");
	SEND(&planned, ((long[]){ -EAGAIN }), 0, -1, EAGAIN, "W");
	/* A part has: the rest can be sent by another call. */
	SEND(&planned, ((long[]){ 3, -EPIPE }), 0, 3, EPIPE, "WW");
	SEND(&planned, ((long[]){ 3, 0 }), 0, 3, EIO, "WW");
	/* The message has gone out, though the end of the task is refused. */
	SEND(&planned, ((long[]){ 7 }), EBUSY, 7, EBUSY, "WM");
	/* The plan is gone: the program goes on. */
	SEND(&planned, ((long[]){ 7 }), ESRCH, 7, 0, "WM");
}

static void receives(void)
{
	RECEIVE(&planned, ((long[]){ 7 }), 0, 7, 0, "MR");
	RECEIVE(&unplanned, ((long[]){ 7 }), 0, 7, 0, "R");
	/* One mark, however often it is interrupted. */
	RECEIVE(&planned, ((long[]){ -EINTR, -EINTR, 5 }), 0, 5, 0, "MRRR");
	RECEIVE(&planned, ((long[]){ -EAGAIN }), 0, -1, EAGAIN, "MR");
	RECEIVE(&planned, ((long[]){ 0 }), 0, 0, 0, "MR");
	/* The message is read, though the end of the task is refused. */
	RECEIVE(&planned, ((long[]){ 7 }), EBUSY, 7, EBUSY, "MR");
	RECEIVE(&planned, ((long[]){ 7 }), ESRCH, 7, 0, "MR");
}

/* Without a plan, through what fds connect. */
static void go_through(int line, const int fds[2])
{
	char buffer[16] = "";

	begin(NULL, 0);
	expect(line, sched_pbs_send(&unplanned, fds[1], "message", 7), 7, 0, "");
	expect(line, sched_pbs_receive(&unplanned, fds[0], buffer, sizeof(buffer)), 7, 0, "");
	if (strcmp(buffer, "message")) {
		fprintf(stderr, "line %d: received %s\n", line, buffer);
		exit(1);
	}
	close(fds[1]);
	expect(line, sched_pbs_receive(&unplanned, fds[0], buffer, sizeof(buffer)), 0, 0, "");
	close(fds[0]);
}

int main(void)
{
	int fds[2];

	sends();
	receives();
	if (pipe(fds))
		return 1;
	go_through(__LINE__, fds);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return 1;
	go_through(__LINE__, fds);
	if (sched_pbs_attach().device != -1 || errno)
		return 1;
	return 0;
}
