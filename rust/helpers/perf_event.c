// SPDX-License-Identifier: GPL-2.0

#include <linux/perf_event.h>
#include <linux/smp.h>

#ifdef CONFIG_PERF_EVENTS
/* Interrupts are off, so nothing takes the event off its counter. */
static bool counts_here(struct perf_event *event)
{
	return event->state == PERF_EVENT_STATE_ACTIVE &&
	       READ_ONCE(event->oncpu) == raw_smp_processor_id();
}

/* perf_event_read_local() for an event of a CPU, with interrupts off. */
int rust_helper_perf_event_read_active(struct perf_event *event, u64 *value)
{
	if (!counts_here(event))
		return -EBUSY;
	event->pmu->read(event);
	*value = local64_read(&event->count);
	return 0;
}

/* What __perf_event_period() does, for one period only. */
int rust_helper_perf_event_overflow_after(struct perf_event *event, u64 count)
{
	if (!counts_here(event))
		return -EBUSY;
	perf_pmu_disable(event->pmu);
	event->pmu->stop(event, PERF_EF_UPDATE);
	/* The kernel's own counter is not to be throttled: it would stand still. */
	event->hw.interrupts = 0;
	local64_set(&event->hw.period_left, count);
	event->pmu->start(event, PERF_EF_RELOAD);
	perf_pmu_enable(event->pmu);
	return 0;
}

/* The counter stands still, as one that is broken does. */
void rust_helper_perf_event_halt(struct perf_event *event)
{
	if (counts_here(event) && !(event->hw.state & PERF_HES_STOPPED))
		event->pmu->stop(event, PERF_EF_UPDATE);
}
#endif
