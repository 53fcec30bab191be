// SPDX-License-Identifier: GPL-2.0

#include <linux/mm.h>

unsigned long rust_helper_get_mm_rss(struct mm_struct *mm)
{
	return get_mm_rss(mm);
}

unsigned long rust_helper_mm_total_vm_pages(struct mm_struct *mm)
{
	return READ_ONCE(mm->total_vm);
}
