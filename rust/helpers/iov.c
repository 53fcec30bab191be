// SPDX-License-Identifier: GPL-2.0

#include <linux/uio.h>

size_t rust_helper_iov_iter_count(const struct iov_iter *i)
{
	return iov_iter_count(i);
}

size_t rust_helper_copy_from_iter(void *to, size_t bytes, struct iov_iter *from)
{
	return copy_from_iter(to, bytes, from);
}

/* All of it or nothing, and without waiting for memory that is not there. */
bool rust_helper_copy_to_iter_nofault(const void *from, size_t bytes, struct iov_iter *to)
{
	size_t copied;

	pagefault_disable();
	copied = copy_to_iter(from, bytes, to);
	pagefault_enable();
	if (copied != bytes)
		iov_iter_revert(to, copied);
	return copied == bytes;
}
