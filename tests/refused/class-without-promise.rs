// error: E0200
// To be a scheduling class is a promise.

struct Class;

impl SchedClass for Class {
    fn enqueue_task(_: Pin<&mut RunQueue>, _: &Task, _: Enqueue) {}
    fn dequeue_task(_: Pin<&mut RunQueue>, _: &Task, _: Dequeue) -> bool {
        false
    }
    fn dequeue_sleeping(_: Pin<&mut RunQueue>, _: &Task) {}
    fn wakeup_preempt(_: Pin<&mut RunQueue>, _: &Task) {}
    fn balance(_: Pin<&mut RunQueue>) -> bool {
        false
    }
    fn pick_task(_: Pin<&mut RunQueue>) -> Option<&Task> {
        None
    }
    fn put_prev_task(_: Pin<&mut RunQueue>, _: &Task, _: Option<&Task>) {}
    fn set_next_task(_: Pin<&mut RunQueue>, _: &Task) {}
    fn task_tick(_: Pin<&mut RunQueue>, _: &Task) {}
    fn switched_from(_: Pin<&mut RunQueue>, _: &Task) {}
    fn switched_to(_: Pin<&mut RunQueue>, _: &Task) {}
}
