// SPDX-License-Identifier: GPL-2.0
//! Sites, to TOML.

use pbs_resources::{format_duration, format_items, Condition, Item, Value, BUILT_IN};
use pbs_text::{append, append_line, quoted, write_list};

use crate::pattern::patterns;
use crate::zone::zone_text;
use crate::{
    Consumer, Kind, Limit, Mapping, Node, Pool, Privilege, Resource, Scope, Share, Site, Validity,
};

impl Site {
    /// The site as [`Site::from_toml`] reads it. Neighbours that are alike and are numbered
    /// become one `[[nodes]]`.
    pub fn to_toml(&self) -> String {
        let mut out = Out(String::new());
        out.text("name", &self.name);
        out.text("time_zone", &zone_text(&self.time_zone));
        out.span("min_dist", self.min_dist_s);
        out.span("default_duration", self.default_duration_s);
        let extension = Share { least: None, permille: Some(self.max_extension_permille) };
        out.text("max_extension", &extension.to_string());
        out.span("allocate_timeout", self.allocate_timeout_s);
        out.span("release_timeout", self.release_timeout_s);
        for (key, seconds) in
            [("planning_horizon", self.planning_horizon_s), ("watchdog", self.watchdog_s)]
        {
            if let Some(seconds) = seconds {
                out.span(key, seconds);
            }
        }
        if self.planning_threads > 1 {
            out.raw("planning_threads", &self.planning_threads.to_string());
        }
        out.span("keep_ended", self.keep_ended_s);
        out.raw("keep_ended_requests", &self.keep_ended_requests.to_string());
        if self.threads_per_core > 1 {
            out.raw("threads_per_core", &self.threads_per_core.to_string());
        }
        if self.mapping != Mapping::default() {
            out.text("mapping", self.mapping.name());
        }
        for (key, items) in [("defaults", &self.defaults), ("force", &self.force)] {
            if !items.is_empty() {
                out.raw(key, &table(items));
            }
        }
        self.write_weights(&mut out);
        self.write_optimise(&mut out);
        for resource in &self.resources {
            self.write_resource(&mut out, resource);
        }
        let mut rest = &self.nodes[..];
        while let Some(first) = rest.first() {
            let (pattern, number, count) = run(rest);
            out.table("[[nodes]]");
            out.text("name", &pattern);
            if count > 1 {
                out.raw("count", &count.to_string());
                if number != 1 {
                    out.raw("first", &number.to_string());
                }
            }
            write_node(&mut out, first);
            rest = &rest[count..];
        }
        for (what, consumers) in [("[[group]]", &self.groups), ("[[user]]", &self.users)] {
            for consumer in consumers {
                out.table(what);
                self.write_consumer(&mut out, consumer);
            }
        }
        for limit in &self.limits {
            out.table("[[limit]]");
            self.write_limit(&mut out, limit);
        }
        for pool in &self.pools {
            out.table("[[pool]]");
            self.write_pool(&mut out, pool);
        }
        out.0
    }

    fn write_weights(&self, out: &mut Out) {
        let weights = &self.weights;
        let numbers = [
            ("best_effort", weights.best_effort),
            ("fixed_start", weights.fixed_start),
            ("deadline", weights.deadline),
            ("slot_aware", weights.slot_aware),
            ("provisional", weights.provisional),
            ("sla", weights.sla),
            ("reservation", weights.reservation),
            ("per_node", weights.per_node),
        ];
        let mut fields: Vec<_> = numbers
            .iter()
            .filter(|(_, weight)| *weight != 0)
            .map(|(key, weight)| (*key, weight.to_string()))
            .collect();
        if !weights.resources.is_empty() {
            let resources = weights.resources.iter();
            let resources = resources.map(|(name, weight)| format!("{} = {weight}", quoted(name)));
            let resources: Vec<_> = resources.collect();
            fields.push(("resource", format!("{{ {} }}", resources.join(", "))));
        }
        if fields.is_empty() {
            return;
        }
        out.table("[priority]");
        for (key, value) in fields {
            out.raw(key, &value);
        }
    }

    fn write_optimise(&self, out: &mut Out) {
        let Some(optimise) = &self.optimise else {
            return;
        };
        out.table("[optimise]");
        let names = optimise.promises.iter().map(|promise| quoted(promise.name()));
        write_list(&mut out.0, "promises", names, false);
        for (key, number) in optimise.numbers() {
            out.raw(key, &number.to_string());
        }
        out.span("even_after", optimise.even_after_s);
        out.text("run_times", optimise.run_times_name());
    }

    /// Writes the properties of a resource that can't be deduced from the nodes.
    fn write_resource(&self, out: &mut Out, resource: &Resource) {
        let name = resource.name.as_str();
        let has = self.nodes.iter().flat_map(|node| &node.has);
        let mut has = has.filter(|item| item.resource == name);
        let is_word = has.next().map(|item| matches!(item.value, Value::Word(_)));
        let is_attribute = resource.kind == Kind::Attribute;
        // Numbers among the words would be read as a contradiction.
        let is_plain = is_word == Some(is_attribute)
            && has.all(|item| matches!(item.value, Value::Word(_)) == is_attribute);
        let is_built_in = BUILT_IN.contains(&name);
        if (is_plain || is_built_in) && resource.validity == Validity::Always {
            return;
        }
        out.table(&format!("[resource.{}]", quoted(name)));
        if resource.scope == Scope::Job {
            out.text("scope", "job");
        }
        if is_attribute && !is_built_in {
            out.text("kind", "attribute");
        }
        if !resource.items.is_empty() {
            let items = resource.items.iter();
            let items = items.map(|(word, amount)| format!("{} = {amount}", quoted(word)));
            let items: Vec<_> = items.collect();
            out.raw("items", &format!("{{ {} }}", items.join(", ")));
        } else if resource.scope == Scope::Job {
            out.text("amount", &Value::Amount(resource.amount).to_string());
        }
        self.write_validity(out, &resource.validity);
    }

    fn write_consumer(&self, out: &mut Out, consumer: &Consumer) {
        out.text("name", &consumer.name);
        if !consumer.groups.is_empty() {
            let groups = consumer.groups.iter().map(|name| quoted(name));
            write_list(&mut out.0, "groups", groups, false);
        }
        if consumer.privileges != Privilege::ordinary() {
            let names = consumer.privileges.iter();
            let names = names.map(|privilege| quoted(privilege.name()));
            write_list(&mut out.0, "privileges", names, false);
        }
        for (key, items) in [("defaults", &consumer.defaults), ("force", &consumer.force)] {
            if !items.is_empty() {
                out.raw(key, &table(items));
            }
        }
        if consumer.priority != 0 {
            out.raw("priority", &consumer.priority.to_string());
        }
        self.write_validity(out, &consumer.validity);
    }

    fn write_limit(&self, out: &mut Out, limit: &Limit) {
        out.text("for", &limit.whom.to_string());
        out.text("resource", &limit.resource);
        if let Some(items) = limit.items {
            out.text("items", &items.to_string());
        }
        if let Some(permille) = limit.soft_permille {
            let soft = Share { least: None, permille: Some(permille) };
            out.text("soft", &soft.to_string());
        }
        for (key, seconds) in [("duration", limit.duration_s), ("area", limit.area_s)] {
            if let Some(seconds) = seconds {
                out.span(key, seconds);
            }
        }
        self.write_validity(out, &limit.validity);
    }

    fn write_pool(&self, out: &mut Out, pool: &Pool) {
        out.text("name", &pool.name);
        out.text("resource", &pool.resource);
        out.text("free", &pool.free.to_string());
        if pool.access != Condition::Any(Vec::new()) {
            out.text("access", &pool.access.to_string());
        }
        if pool.share {
            out.raw("share", "true");
        }
        self.write_validity(out, &pool.validity);
    }

    fn write_validity(&self, out: &mut Out, validity: &Validity) {
        if *validity != Validity::Always {
            out.text("validity", &validity.to_text(&self.time_zone));
        }
    }
}

struct Out(String);

impl Out {
    fn raw(&mut self, key: &str, value: &str) {
        // Writing to a string can't fail.
        append_line!(self.0, "{key} = {value}");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.raw(key, &quoted(value));
    }

    fn span(&mut self, key: &str, seconds: u64) {
        self.text(key, &format_duration(seconds));
    }

    fn table(&mut self, name: &str) {
        append!(self.0, "\n{name}\n");
    }
}

/// Items as an inline table.
fn table(items: &[Item]) -> String {
    let fields = items.iter().map(|item| {
        let value = quoted(&item.value.to_string());
        format!("{} = {value}", quoted(&item.resource))
    });
    let fields: Vec<_> = fields.collect();
    format!("{{ {} }}", fields.join(", "))
}

fn write_node(out: &mut Out, node: &Node) {
    out.text("has", &format_items(&node.has));
    if node.prio != 0 {
        out.raw("prio", &node.prio.to_string());
    }
    if let Some(only_if) = &node.only_if {
        out.text("only_if", &only_if.to_string());
    }
    if let Some(kept) = &node.kept {
        let (cores, of) = (kept.cores, quoted(&kept.resource));
        out.raw("kept", &format!("{{ cores = {cores}, for = {of} }}"));
    }
    if let Some(switch) = &node.switch {
        out.text("switch", switch);
    }
}

/// The name of the first nodes, which are alike but for their numbers, the first number
/// and how many they are.
fn run(nodes: &[Node]) -> (String, u64, usize) {
    let Some(first) = nodes.first() else {
        return (String::new(), 0, 0);
    };
    let mut best = (first.name.clone(), 0, 1);
    let Some((patterns, number)) = patterns(&first.name) else {
        return best;
    };
    for pattern in patterns {
        let follows = |(number, node): &(u64, &Node)| {
            let is_alike = (&node.has, node.prio, &node.only_if, &node.kept, &node.switch)
                == (&first.has, first.prio, &first.only_if, &first.kept, &first.switch);
            is_alike && pattern.with(*number) == node.name
        };
        let count = (number..).zip(nodes).take_while(follows).count();
        if count > best.2 {
            best = (pattern.to_string(), number, count);
        }
    }
    best
}
