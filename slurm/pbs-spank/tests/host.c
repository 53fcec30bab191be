// SPDX-License-Identifier: GPL-2.0
/*
 * A daemon of Slurm's, as far as a plugin sees it: loads the plugin and calls its hooks, with
 * what the environment says of a step. It prints what the plugin says, one thing a line.
 *
 * host PLUGIN [ARGUMENT]...
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if __has_include(<slurm/spank.h>)
/* Slurm's own numbers, so that those of the plugin are compared with them. */
#include <slurm/spank.h>
#else
typedef void *spank_t;
enum {
	S_JOB_UID = 0, S_JOB_ID = 2, S_JOB_STEPID = 3,
	S_JOB_ALLOC_CORES = 25, S_JOB_ALLOC_MEM = 26,
};
enum { ESPANK_SUCCESS = 0, ESPANK_NOT_AVAIL = 3009 };
#endif

static const char *of_step(const char *name)
{
	return getenv(name);
}

#if __has_include(<slurm/spank.h>)
spank_context_t spank_context(void)
#else
int spank_context(void)
#endif
{
	return atoi(of_step("CONTEXT"));
}

#if __has_include(<slurm/spank.h>)
spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
#else
int spank_get_item(spank_t spank, int item, ...)
#endif
{
	static char cores[65536];
	const char *value = NULL;
	int err = ESPANK_SUCCESS;
	va_list args;

	(void)spank;
	va_start(args, item);
	switch ((int)item) {
	case S_JOB_UID:
	case S_JOB_ID:
	case S_JOB_STEPID:
		value = of_step(item == S_JOB_UID ? "UID_OF" :
				item == S_JOB_ID ? "JOB" : "STEP");
		if (value)
			*va_arg(args, uint32_t *) = strtoul(value, NULL, 0);
		break;
	case S_JOB_ALLOC_MEM:
		value = of_step("MEMORY");
		if (value)
			*va_arg(args, uint64_t *) = strtoull(value, NULL, 0);
		break;
	case S_JOB_ALLOC_CORES:
		value = of_step("CORES");
		snprintf(cores, sizeof(cores), "%s", value ? value : "");
		if (value)
			*va_arg(args, char **) = cores;
		break;
	}
	va_end(args);
	if (!value)
		err = ESPANK_NOT_AVAIL;
	return err;
}

static void said(const char *how, const char *format, va_list args)
{
	printf("%s: ", how);
	vprintf(format, args);
	printf("\n");
}

void slurm_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	said("error", format, args);
	va_end(args);
}

void slurm_verbose(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	said("verbose", format, args);
	va_end(args);
}

int main(int argc, char **argv)
{
	static const char *const hooks[] = {
		"slurm_spank_init_post_opt", "slurm_spank_exit",
	};
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	const unsigned int *version, *spank_version;
	const char *name, *type;

	if (!plugin) {
		printf("not loaded: %s\n", dlerror());
		return 1;
	}
	name = dlsym(plugin, "plugin_name");
	type = dlsym(plugin, "plugin_type");
	version = dlsym(plugin, "plugin_version");
	spank_version = dlsym(plugin, "spank_plugin_version");
	if (!name || !type || !version || !spank_version)
		return 2;
	printf("plugin: %s %s %#x %u\n", name, type, *version, *spank_version);
	for (int hook = 0; hook < 2; hook++) {
		int (*call)(void *spank, int argc, char **argv) =
			(int (*)(void *, int, char **))dlsym(plugin, hooks[hook]);

		if (!call)
			return 3;
		printf("%s: %d\n", hooks[hook], call(&plugin, argc - 2, argv + 2));
	}
	return 0;
}
