// SPDX-License-Identifier: GPL-2.0
/*
 * The guest's first process: sets up the file systems, runs the one command
 * that qemu/vm put into the initramfs, tells the host how it ended and powers
 * the machine off.
 *
 * The command writes straight to the virtio ports "stdout" and "stderr".  A
 * helper that copied from pipes would itself have to be scheduled, and would
 * lose the last lines in front of a crash.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORTS "/sys/class/virtio-ports"

#ifdef __x86_64__
#define TERMINAL "/dev/ttyS0"
#else
#define TERMINAL "/dev/ttyAMA0"
#endif

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static void fail(const char *format, ...)
{
	va_list ap;

	/* The kernel's console; the host finds no status and shows its log. */
	fputs("init: ", stdout);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf(": %s\n", strerror(errno));
	fflush(stdout);
	power_off();
}

static void mount_at(const char *type, const char *dir, const char *options)
{
	mkdir(dir, 0755);
	if (mount(type, dir, type, 0, options))
		fail("cannot mount %s at %s", type, dir);
}

static int open_port(const char *wanted, int flags)
{
	char path[512], name[64];
	struct dirent *entry;
	DIR *dir = opendir(PORTS);
	int fd, n;

	if (!dir)
		fail("no virtio ports");
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), PORTS "/%s/name", entry->d_name);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		n = read(fd, name, sizeof(name) - 1);
		close(fd);
		if (n <= 0)
			continue;
		name[n] = 0;
		name[strcspn(name, "\n")] = 0;
		if (strcmp(name, wanted))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		closedir(dir);
		fd = open(path, flags | O_CLOEXEC);
		if (fd < 0)
			fail("cannot open %s", path);
		return fd;
	}
	errno = ENOENT;
	fail("no virtio port %s", wanted);
	return -1;
}

/*
 * /command: strings, each ended by NUL: the host's seconds since 1970, whether
 * a folder is shared, the number of environment strings, these, and argv.
 */
static char **read_command(void)
{
	static char text[1 << 20];
	char **words;
	size_t bytes, i, n = 0;
	FILE *f = fopen("/command", "r");

	if (!f)
		fail("cannot open /command");
	bytes = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	for (i = 0; i < bytes; i++)
		n += !text[i];
	words = calloc(n + 1, sizeof(*words));
	if (!words || n < 4)
		fail("/command holds no command");
	for (i = 0, n = 0; i < bytes; i += strlen(text + i) + 1)
		words[n++] = text + i;
	return words;
}

/* Busybox knows its names itself; what is there already stays. */
static void install_busybox(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execl("/bin/busybox", "busybox", "--install", "-s", (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		fail("cannot install busybox");
}

static void run(char **argv, int out, int err)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (out >= 0) {
		close(0);
		if (open("/dev/null", O_RDONLY) != 0)
			_exit(127);
		dup2(out, 1);
		dup2(err, 2);
	} else {
		/* An interactive shell wants a terminal of its own. */
		close(0);
		if (open(TERMINAL, O_RDWR) != 0)
			_exit(127);
		dup2(0, 1);
		dup2(0, 2);
	}
	execvp(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

int main(void)
{
	int out = -1, err = -1, status_port = -1, status, code, interactive;
	struct timeval now = { 0 };
	char **words, text[16];
	pid_t pid, dead;
	long n;

	mkdir("/proc", 0755);
	mount_at("proc", "/proc", NULL);
	mount_at("sysfs", "/sys", NULL);
	mount_at("devtmpfs", "/dev", "mode=0755");
	mount_at("devpts", "/dev/pts", "mode=0620,ptmxmode=0666");
	mount_at("tmpfs", "/dev/shm", "mode=1777");
	mount_at("tmpfs", "/tmp", "mode=1777");
	mount_at("tmpfs", "/run", "mode=0755");
	mount_at("debugfs", "/sys/kernel/debug", NULL);
	/* Not every kernel has tracepoints. */
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mount_at("cgroup2", "/sys/fs/cgroup", NULL);
	if (symlink("/proc/self/fd", "/dev/fd") ||
	    symlink("/proc/self/fd/0", "/dev/stdin") ||
	    symlink("/proc/self/fd/1", "/dev/stdout") ||
	    symlink("/proc/self/fd/2", "/dev/stderr"))
		fail("cannot make /dev/std*");
	if (sethostname("pbs", 3))
		fail("cannot set the host's name");

	install_busybox();
	words = read_command();
	now.tv_sec = atol(*words++);
	settimeofday(&now, NULL);
	if (!strcmp(*words++, "share")) {
		mkdir("/mnt", 0755);
		if (mount("share", "/mnt", "9p", 0, "trans=virtio,version=9p2000.L,msize=262144,cache=none"))
			fail("cannot mount the shared folder");
	}
	interactive = !strcmp(*words++, "shell");
	for (n = atol(*words++); n > 0 && *words; n--)
		putenv(*words++);
	if (!*words)
		fail("/command holds no command");

	status_port = open_port("status", O_WRONLY);
	if (!interactive) {
		out = open_port("stdout", O_WRONLY);
		err = open_port("stderr", O_WRONLY);
	}

	pid = fork();
	if (pid < 0)
		fail("cannot fork");
	if (!pid)
		run(words, out, err);
	do {
		dead = wait(&status);
	} while (dead != pid && (dead > 0 || errno == EINTR));

	code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	n = snprintf(text, sizeof(text), "%d\n", code);
	if (write(status_port, text, n) != n)
		fail("cannot tell the status");
	power_off();
}
