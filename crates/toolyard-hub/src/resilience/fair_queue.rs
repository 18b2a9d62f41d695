//! A queue for a limited number of slots in which callers take turns, without I/O.
//!
//! A caller may occupy at most as many slots as are free. One caller alone occupies half of them, two a third each: some
//! are always left for the next caller. Callers with waiting calls are served in turn, however many calls each of them has.
//!
//! The turns are those of start-time fair queueing: each call has a place in virtual time, the smallest is served first, and
//! the next call of the same caller follows one turn later. Virtual time advances with every call that is served, so that a
//! stream of new callers cannot pass a waiting call forever.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

/// One turn in virtual time. It is divided by the number of waiting callers, so it must be large.
const TURN: u64 = 1 << 20;

/// Callers without calls are forgotten once this many are known, so that those who call again and again are not added and
/// removed each time.
const MIN_KNOWN_CALLERS: usize = 64;

/// The place of one call in the queue, or among the running calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The index of its caller.
    caller: usize,
    sequence: u64,
    exclusive: bool,
}

/// `W` is what the queue returns for a waiting call when it may start.
#[derive(Debug)]
pub(crate) struct FairQueue<W> {
    slots: usize,
    running: usize,
    is_exclusive_running: bool,
    next_sequence: u64,
    virtual_time: u64,
    callers: Callers<W>,
    /// The callers with waiting calls in the order in which they are served: turn, sequence of the first call, index.
    waiting: BTreeSet<(u64, u64, usize)>,
}

#[derive(Debug)]
struct CallerQueue<W> {
    name: Arc<str>,
    running: usize,
    /// When the first waiting call is served, in virtual time.
    turn: u64,
    waiting: VecDeque<(Ticket, W)>,
}

impl<W> FairQueue<W> {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            slots,
            running: 0,
            is_exclusive_running: false,
            next_sequence: 0,
            virtual_time: 0,
            callers: Callers::new(),
            waiting: BTreeSet::new(),
        }
    }

    /// Starts a call unless it has to wait.
    pub(crate) fn try_start(&mut self, caller: &Arc<str>, exclusive: bool) -> Option<Ticket> {
        if !self.waiting.is_empty() || (exclusive && self.running > 0) {
            return None;
        }
        let (free, index) = (self.free(), self.callers.index_of(caller));
        let queue = self.callers.get_mut(index).filter(|queue| queue.running < free)?;
        queue.running += 1;
        self.count_start(exclusive);
        Some(self.new_ticket(index, exclusive))
    }

    /// Adds a call to the queue. Returns its ticket and the calls that may start now, this one perhaps among them.
    pub(crate) fn enqueue(&mut self, caller: &Arc<str>, exclusive: bool, waiter: W) -> (Ticket, Vec<W>) {
        let index = self.callers.index_of(caller);
        let ticket = self.new_ticket(index, exclusive);
        if let Some(queue) = self.callers.get_mut(index) {
            if queue.waiting.is_empty() {
                // A caller that did not wait has no claim to the turns that it missed; one with running calls had its turn.
                let had_turn = if queue.running > 0 { TURN } else { 0 };
                queue.turn = queue.turn.max(self.virtual_time + had_turn);
                self.waiting.insert((queue.turn, ticket.sequence, index));
            }
            queue.waiting.push_back((ticket, waiter));
        }
        (ticket, self.admit())
    }

    /// Removes a call that is finished or does not wait any longer. Returns the calls that may start now.
    pub(crate) fn finish(&mut self, ticket: Ticket) -> Vec<W> {
        let Some(queue) = self.callers.get_mut(ticket.caller) else { return Vec::new() };
        let place = queue.waiting.binary_search_by_key(&ticket.sequence, |(waiting, _)| waiting.sequence);
        if let Ok(place) = place {
            queue.waiting.remove(place);
            if place == 0 {
                self.waiting.remove(&(queue.turn, ticket.sequence, ticket.caller));
                let next = queue.waiting.front().map(|(next, _)| (queue.turn, next.sequence, next.caller));
                self.waiting.extend(next);
            }
        } else {
            queue.running -= 1;
            self.running -= 1;
            self.is_exclusive_running &= !ticket.exclusive;
        }
        self.admit()
    }

    /// The numbers of running and of waiting calls.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        let waiting = self.waiting.iter().filter_map(|(.., index)| self.callers.get(*index));
        (self.running, waiting.map(|queue| queue.waiting.len()).sum())
    }

    fn new_ticket(&mut self, caller: usize, exclusive: bool) -> Ticket {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        Ticket { caller, sequence, exclusive }
    }

    fn free(&self) -> usize {
        if self.is_exclusive_running { 0 } else { self.slots - self.running }
    }

    fn count_start(&mut self, exclusive: bool) {
        self.running += 1;
        self.is_exclusive_running |= exclusive;
    }

    /// Starts waiting calls until none may start.
    fn admit(&mut self) -> Vec<W> {
        let mut admitted = Vec::new();
        while let Some(place) = self.next_place() {
            let (turn, _, index) = place;
            let Some(queue) = self.callers.get_mut(index) else { break };
            // An exclusive call whose turn it is keeps later calls from starting, or it would wait forever.
            let is_exclusive = queue.waiting.front().is_some_and(|(ticket, _)| ticket.exclusive);
            if is_exclusive && self.running > 0 {
                break;
            }
            let Some((ticket, waiter)) = queue.waiting.pop_front() else { break };
            queue.running += 1;
            // A caller that could not be served when its turn came has no claim to the turns that it missed.
            queue.turn = turn.max(self.virtual_time) + TURN;
            // Divided by the waiting callers and a new one, which is served before the next call of this caller.
            let advance = TURN.div_ceil(self.waiting.len() as u64 + 1);
            self.virtual_time = self.virtual_time.max(turn) + advance;
            self.waiting.remove(&place);
            self.waiting.extend(queue.waiting.front().map(|(next, _)| (queue.turn, next.sequence, index)));
            self.count_start(ticket.exclusive);
            admitted.push(waiter);
        }
        admitted
    }

    /// The first caller that does not occupy its share, if a slot is free.
    fn next_place(&self) -> Option<(u64, u64, usize)> {
        let free = self.free();
        if self.waiting.is_empty() || free == 0 {
            return None;
        }
        let may_be_next = |queue: &CallerQueue<W>| {
            queue.running < free || queue.waiting.front().is_some_and(|(ticket, _)| ticket.exclusive)
        };
        self.waiting.iter().find(|(.., index)| self.callers.get(*index).is_some_and(may_be_next)).copied()
    }
}

/// The known callers by index. An index stays valid while its caller has running or waiting calls.
#[derive(Debug)]
struct Callers<W> {
    queues: Vec<Option<CallerQueue<W>>>,
    by_name: HashMap<Arc<str>, usize>,
    vacant: Vec<usize>,
    /// The index of the caller that was looked up last: it often calls again.
    latest: usize,
    /// Callers without calls are forgotten when this many are known.
    forget_at: usize,
}

impl<W> Callers<W> {
    fn new() -> Self {
        Self {
            queues: Vec::new(),
            by_name: HashMap::new(),
            vacant: Vec::new(),
            latest: 0,
            forget_at: MIN_KNOWN_CALLERS,
        }
    }

    fn get(&self, index: usize) -> Option<&CallerQueue<W>> {
        self.queues.get(index)?.as_ref()
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut CallerQueue<W>> {
        self.queues.get_mut(index)?.as_mut()
    }

    fn index_of(&mut self, caller: &Arc<str>) -> usize {
        if self.get(self.latest).is_some_and(|latest| latest.name == *caller) {
            return self.latest;
        }
        self.latest = match self.by_name.get(caller) {
            Some(index) => *index,
            None => self.add(caller),
        };
        self.latest
    }

    fn add(&mut self, caller: &Arc<str>) -> usize {
        if self.by_name.len() >= self.forget_at {
            self.forget_idle();
        }
        let queue = CallerQueue { name: Arc::clone(caller), running: 0, turn: 0, waiting: VecDeque::new() };
        let index = self.vacant.pop().unwrap_or(self.queues.len());
        match self.queues.get_mut(index) {
            Some(vacant) => *vacant = Some(queue),
            None => self.queues.push(Some(queue)),
        }
        self.by_name.insert(Arc::clone(caller), index);
        index
    }

    /// Forgets the callers without calls. The next time is when twice as many are known as now have calls.
    fn forget_idle(&mut self) {
        for (index, slot) in self.queues.iter_mut().enumerate() {
            if let Some(idle) = slot.take_if(|queue| queue.running == 0 && queue.waiting.is_empty()) {
                self.by_name.remove(&idle.name);
                self.vacant.push(index);
            }
        }
        self.forget_at = (2 * self.by_name.len()).max(MIN_KNOWN_CALLERS);
    }
}

#[cfg(test)]
#[path = "fair_queue_tests.rs"]
mod tests;
