// SPDX-License-Identifier: GPL-2.0
//! Requests of resources for a cluster: chunks, places, durations, conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rset { pub chunks: Vec<Chunk>, pub job_wide: Vec<Item>, pub place: Place }
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk { pub count: u64, pub items: Vec<Item> }
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item { pub resource: String, pub value: Value }
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value { Amount(u64), Word(String) }
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Arrangement { #[default] Free, Pack, Scatter }
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing { Exclusive, Shared }
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Place { pub arrangement: Arrangement, pub sharing: Option<Sharing> }
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition { Any(Vec<Condition>), All(Vec<Condition>), User(String), Group(String) }
pub trait Facts { fn amount(&self, name: &str) -> Option<u64>; fn is_user(&self, name: &str) -> bool; fn is_group(&self, name: &str) -> bool; }
impl Condition { pub fn holds(&self, f: &impl Facts) -> bool { match self { Condition::Any(c) => c.iter().any(|c| c.holds(f)), Condition::All(c) => c.iter().all(|c| c.holds(f)), Condition::User(u) => f.is_user(u), Condition::Group(g) => f.is_group(g) } } }
fn value(t: &str) -> Value {
    let (n, u) = t.split_at(t.find(|c: char| !c.is_ascii_digit()).unwrap_or(t.len()));
    let f = match u { "" => 1, "k" => 1 << 10, "m" => 1 << 20, "g" => 1 << 30, "t" => 1u64 << 40, _ => return Value::Word(t.into()) };
    n.parse::<u64>().map_or(Value::Word(t.into()), |n| Value::Amount(n * f))
}
impl std::str::FromStr for Rset { type Err = String;
 fn from_str(t: &str) -> Result<Self, String> {
    let mut r = Rset { chunks: vec![], job_wide: vec![], place: Place::default() };
    let item = |t: &str| { let (a, b) = t.split_once('=').ok_or("item")?; Ok::<_, String>(Item { resource: a.into(), value: value(b) }) };
    for (i, part) in t.trim_start_matches("rset=").split(',').enumerate() {
        if i == 0 { for c in part.split('+') { let mut items: Vec<&str> = c.split(':').collect(); let count = if items[0].contains('=') { 1 } else { items.remove(0).parse().map_err(|_| "count")? };
            r.chunks.push(Chunk { count, items: items.into_iter().map(item).collect::<Result<_, _>>()? }); } }
        else if let Some(p) = part.strip_prefix("place=") { for w in p.split(':') { match w { "pack" => r.place.arrangement = Arrangement::Pack, "scatter" => r.place.arrangement = Arrangement::Scatter, "excl" => r.place.sharing = Some(Sharing::Exclusive), "shared" => r.place.sharing = Some(Sharing::Shared), _ => {} } } }
        else { r.job_wide.push(item(part)?); }
    } Ok(r) } }
impl std::str::FromStr for Condition { type Err = String; fn from_str(_: &str) -> Result<Self, String> { Err("not yet".into()) } }
