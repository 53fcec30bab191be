// SPDX-License-Identifier: GPL-2.0
//! Perfect matchings of the greatest weight, by shrinking odd circles.
//!
//! *Nodes* are vertices, and blossoms: odd circles of nodes that are looked at as
//! one. A node is outer (an even number of edges from the root of its tree), inner
//! or in no tree. Prices p make the slack p(u) + p(v) − 2·w(u, v) of each edge
//! nothing or more; matched edges and those of trees are tight, with slack nothing.

use std::collections::VecDeque;

const NONE: usize = usize::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// In no tree.
    Free,
    Outer,
    Inner,
}

/// The state of the search.
pub(crate) struct Blossoms {
    /// Vertices are `0..count`, blossoms come after them.
    count: usize,
    /// One more than the last node that was ever used.
    used: usize,
    /// The most nodes that there can be.
    room: usize,
    weights: Vec<i64>,
    /// Between each two nodes the edge of least slack: a vertex in the one, and one
    /// in the other.
    edges: Vec<Option<(usize, usize)>>,
    prices: Vec<i64>,
    /// The vertex that a node's matched edge leads to.
    mate: Vec<usize>,
    /// The outer vertex that has the edge of least slack to a node.
    nearest: Vec<usize>,
    /// The greatest blossom that a node is in, or itself; `NONE`: it is not in use.
    top: Vec<usize>,
    /// The vertex that the edge of a node to its parent in the tree leads to.
    parent: Vec<usize>,
    side: Vec<Side>,
    /// Nodes of a blossom round its circle, from its base on.
    circle: Vec<Vec<usize>>,
    /// Node on the circle of a blossom that has the vertex, by blossom and vertex.
    part: Vec<Vec<usize>>,
    /// Number of the walk to a root on which the node was last seen.
    seen: Vec<usize>,
    now: usize,
    /// Outer vertices whose edges are to be looked at.
    queue: VecDeque<usize>,
}

impl Blossoms {
    /// Starts the search for a complete graph with an even number of vertices. Weights are
    /// positive.
    pub(crate) fn new(count: usize, weight: impl Fn(usize, usize) -> i64) -> Self {
        let room = count + count / 2 + 1;
        let mut blossoms = Self {
            count,
            used: count,
            room,
            weights: vec![0; count * count],
            edges: vec![None; room * room],
            prices: vec![0; room],
            mate: vec![NONE; room],
            nearest: vec![NONE; room],
            top: vec![NONE; room],
            parent: vec![NONE; room],
            side: vec![Side::Free; room],
            circle: vec![Vec::new(); room],
            part: vec![vec![NONE; count]; room],
            seen: vec![0; room],
            now: 0,
            queue: VecDeque::new(),
        };
        let mut greatest = 0;
        for one in 0..count {
            blossoms.top[one] = one;
            blossoms.part[one][one] = one;
            for other in (0..count).filter(|&other| other != one) {
                let weight = weight(one, other);
                greatest = greatest.max(weight);
                blossoms.weights[one * count + other] = weight;
                blossoms.edges[one * room + other] = Some((one, other));
            }
        }
        blossoms.prices[..count].fill(greatest);
        blossoms
    }

    /// The mate of each vertex.
    pub(crate) fn solve(mut self) -> Vec<usize> {
        while self.augment_once() {}
        self.mate.truncate(self.count);
        self.mate
    }

    fn edge(&self, one: usize, other: usize) -> Option<(usize, usize)> {
        self.edges[one * self.room + other]
    }

    fn set_edge(&mut self, one: usize, other: usize, edge: Option<(usize, usize)>) {
        self.edges[one * self.room + other] = edge;
        let back = edge.map(|(from, to)| (to, from));
        self.edges[other * self.room + one] = back;
    }

    /// Returns the slack of the best edge between two nodes.
    fn slack(&self, one: usize, other: usize) -> i64 {
        match self.edge(one, other) {
            Some((from, to)) => {
                self.prices[from] + self.prices[to] - 2 * self.weights[from * self.count + to]
            }
            None => i64::MAX,
        }
    }

    fn top_of(&self, vertex: usize) -> usize {
        match vertex {
            NONE => NONE,
            _ => self.top[vertex],
        }
    }

    fn is_top(&self, node: usize) -> bool {
        self.top[node] == node
    }

    /// Notes an edge from an outer vertex to the node, if it is the nearest.
    fn consider(&mut self, vertex: usize, node: usize) {
        let nearest = self.nearest[node];
        if nearest == NONE || self.slack(vertex, node) < self.slack(nearest, node) {
            self.nearest[node] = vertex;
        }
    }

    fn find_nearest(&mut self, node: usize) {
        self.nearest[node] = NONE;
        for vertex in 0..self.count {
            let top = self.top[vertex];
            if top != node && self.side[top] == Side::Outer && self.edge(vertex, node).is_some() {
                self.consider(vertex, node);
            }
        }
    }

    fn enqueue(&mut self, node: usize) {
        if node < self.count {
            self.queue.push_back(node);
            return;
        }
        for place in 0..self.circle[node].len() {
            self.enqueue(self.circle[node][place]);
        }
    }

    fn set_top(&mut self, node: usize, top: usize) {
        self.top[node] = top;
        if node >= self.count {
            for place in 0..self.circle[node].len() {
                self.set_top(self.circle[node][place], top);
            }
        }
    }

    /// The place of a node on the circle of its blossom, an even number of edges from
    /// the base; the circle is turned round if it must be.
    fn even_place(&mut self, blossom: usize, node: usize) -> usize {
        let circle = &mut self.circle[blossom];
        let place = circle.iter().position(|&known| known == node).unwrap_or(0);
        if place.is_multiple_of(2) {
            return place;
        }
        circle[1..].reverse();
        circle.len() - place
    }

    /// Matches a node to another, and what is within it accordingly.
    fn match_to(&mut self, node: usize, other: usize) {
        let Some((from, to)) = self.edge(node, other) else {
            return;
        };
        self.mate[node] = to;
        if node < self.count {
            return;
        }
        let base = self.part[node][from];
        let place = self.even_place(node, base);
        for step in 0..place {
            let pair = (self.circle[node][step], self.circle[node][step ^ 1]);
            self.match_to(pair.0, pair.1);
        }
        self.match_to(base, other);
        self.circle[node].rotate_left(place);
    }

    /// Turns the matched edges on the way from a node to its root, when the node
    /// gets another mate.
    fn turn(&mut self, mut node: usize, mut other: usize) {
        loop {
            let before = self.top_of(self.mate[node]);
            self.match_to(node, other);
            if before == NONE {
                return;
            }
            let above = self.top_of(self.parent[before]);
            self.match_to(before, above);
            (node, other) = (above, before);
        }
    }

    /// The first node that is on the ways of both to their roots.
    fn meeting(&mut self, mut one: usize, mut other: usize) -> Option<usize> {
        self.now += 1;
        while one != NONE || other != NONE {
            if one != NONE {
                if self.seen[one] == self.now {
                    return Some(one);
                }
                self.seen[one] = self.now;
                let inner = self.top_of(self.mate[one]);
                one = match inner {
                    NONE => NONE,
                    _ => self.top_of(self.parent[inner]),
                };
            }
            std::mem::swap(&mut one, &mut other);
        }
        None
    }

    /// The nodes from an outer one up to, and without, `base`.
    fn way(&self, mut node: usize, base: usize) -> Vec<usize> {
        let mut way = Vec::new();
        while node != base {
            let inner = self.top_of(self.mate[node]);
            way.extend([node, inner]);
            node = self.top_of(self.parent[inner]);
        }
        way
    }

    /// Two outer nodes of one tree are joined by a tight edge: what is between them
    /// and `base` is a circle.
    fn shrink(&mut self, one: usize, base: usize, other: usize) {
        let free = (self.count..self.used).find(|&node| self.top[node] == NONE);
        let blossom = free.unwrap_or(self.used);
        self.used = self.used.max(blossom + 1);
        let (mut up, down) = (self.way(one, base), self.way(other, base));
        for inner in up.iter().chain(&down).skip(1).step_by(2) {
            // `way` has outer and inner by turns; both are of an even length.
            self.enqueue(*inner);
        }
        up.push(base);
        up.reverse();
        up.extend(down);
        self.circle[blossom] = up;
        self.prices[blossom] = 0;
        self.side[blossom] = Side::Outer;
        self.mate[blossom] = self.mate[base];
        self.parent[blossom] = self.parent[base];
        self.set_top(blossom, blossom);
        for node in 0..self.used {
            self.set_edge(blossom, node, None);
        }
        self.part[blossom].fill(NONE);
        for place in 0..self.circle[blossom].len() {
            let inside = self.circle[blossom][place];
            for node in (0..self.used).filter(|&node| node != blossom) {
                let edge = self.edge(inside, node);
                if edge.is_some() && self.slack(inside, node) < self.slack(blossom, node) {
                    self.set_edge(blossom, node, edge);
                }
            }
            for vertex in 0..self.count {
                if self.part[inside][vertex] != NONE {
                    self.part[blossom][vertex] = inside;
                }
            }
        }
        self.find_nearest(blossom);
    }

    /// An inner blossom whose price is nothing is a circle again.
    fn expand(&mut self, blossom: usize) {
        for place in 0..self.circle[blossom].len() {
            let node = self.circle[blossom][place];
            self.set_top(node, node);
        }
        let parent = self.parent[blossom];
        let Some((from, _)) = self.edge(blossom, parent) else {
            return;
        };
        let entry = self.part[blossom][from];
        let place = self.even_place(blossom, entry);
        let circle = std::mem::take(&mut self.circle[blossom]);
        // From where the tree comes in to the base, that is by turns inner and outer.
        for pair in circle[..place].chunks(2) {
            if let [inner, outer] = *pair {
                let above = self.edge(outer, inner);
                self.parent[inner] = above.map_or(NONE, |(from, _)| from);
                self.side[inner] = Side::Inner;
                self.side[outer] = Side::Outer;
                self.nearest[inner] = NONE;
                self.find_nearest(outer);
                self.enqueue(outer);
            }
        }
        self.side[entry] = Side::Inner;
        self.parent[entry] = parent;
        self.nearest[entry] = NONE;
        for &node in &circle[place + 1..] {
            self.side[node] = Side::Free;
            self.find_nearest(node);
        }
        self.top[blossom] = NONE;
    }

    /// Follows a tight edge from an outer vertex. Returns whether there is one more pair now.
    fn meet(&mut self, from: usize, to: usize) -> bool {
        let (one, other) = (self.top[from], self.top[to]);
        match self.side[other] {
            Side::Free => {
                self.parent[other] = from;
                self.side[other] = Side::Inner;
                let mate = self.top_of(self.mate[other]);
                self.nearest[other] = NONE;
                self.nearest[mate] = NONE;
                self.side[mate] = Side::Outer;
                self.enqueue(mate);
                false
            }
            Side::Outer => match self.meeting(one, other) {
                Some(base) => {
                    self.shrink(one, base, other);
                    false
                }
                None => {
                    self.turn(one, other);
                    self.turn(other, one);
                    true
                }
            },
            Side::Inner => false,
        }
    }

    /// Grows trees from all free nodes until there is one more pair.
    fn augment_once(&mut self) -> bool {
        self.side[..self.used].fill(Side::Free);
        self.nearest[..self.used].fill(NONE);
        self.queue.clear();
        for node in 0..self.used {
            if self.is_top(node) && self.mate[node] == NONE {
                self.parent[node] = NONE;
                self.side[node] = Side::Outer;
                self.enqueue(node);
            }
        }
        if self.queue.is_empty() {
            return false;
        }
        loop {
            while let Some(vertex) = self.queue.pop_front() {
                if self.side[self.top[vertex]] == Side::Inner {
                    continue;
                }
                for other in 0..self.count {
                    if other == vertex || self.top[vertex] == self.top[other] {
                        continue;
                    }
                    if self.slack(vertex, other) > 0 {
                        self.consider(vertex, self.top[other]);
                    } else if self.meet(vertex, other) {
                        return true;
                    }
                }
            }
            if !self.change_prices() {
                return false;
            }
            for node in 0..self.used {
                let nearest = self.nearest[node];
                if !self.is_top(node) || nearest == NONE || self.top[nearest] == node {
                    continue;
                }
                if self.slack(nearest, node) > 0 {
                    continue;
                }
                if let Some((from, to)) = self.edge(nearest, node) {
                    if self.meet(from, to) {
                        return true;
                    }
                }
            }
            for node in self.count..self.used {
                let is_empty = self.is_top(node) && self.prices[node] == 0;
                if is_empty && self.side[node] == Side::Inner {
                    self.expand(node);
                }
            }
        }
    }

    /// Makes one more edge tight, or the price of an inner blossom nothing.
    fn change_prices(&mut self) -> bool {
        let mut by = i64::MAX;
        for node in (0..self.used).filter(|&node| self.is_top(node)) {
            if node >= self.count && self.side[node] == Side::Inner {
                by = by.min(self.prices[node] / 2);
            }
            let nearest = self.nearest[node];
            if nearest == NONE {
                continue;
            }
            match self.side[node] {
                Side::Free => by = by.min(self.slack(nearest, node)),
                // Both ends change.
                Side::Outer => by = by.min(self.slack(nearest, node) / 2),
                Side::Inner => {}
            }
        }
        if by == i64::MAX {
            return false;
        }
        for vertex in 0..self.count {
            match self.side[self.top[vertex]] {
                Side::Outer => self.prices[vertex] -= by,
                Side::Inner => self.prices[vertex] += by,
                Side::Free => {}
            }
        }
        for node in self.count..self.used {
            if self.is_top(node) {
                match self.side[node] {
                    Side::Outer => self.prices[node] += 2 * by,
                    Side::Inner => self.prices[node] -= 2 * by,
                    Side::Free => {}
                }
            }
        }
        true
    }
}
