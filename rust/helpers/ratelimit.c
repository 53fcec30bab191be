// SPDX-License-Identifier: GPL-2.0

#include <linux/ratelimit.h>

/* Whether one more line may go to the log: some in five seconds. */
bool rust_helper_log_ratelimit(void)
{
	static DEFINE_RATELIMIT_STATE(limit, DEFAULT_RATELIMIT_INTERVAL,
				      DEFAULT_RATELIMIT_BURST);

	return __ratelimit(&limit);
}
