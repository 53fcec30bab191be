// SPDX-License-Identifier: GPL-2.0
//! The file to start from, and the one in the documentation.

use pbs_site::Site;

#[test]
fn the_sample_site_is_read() {
    let text = include_str!("../../../samples/cluster/site.toml");
    let site = Site::from_toml(text).unwrap();
    assert_eq!(site.nodes.len(), 30);
    assert_eq!(site.most("ncpus", None), 24 * 16 + 4 * 16 + 2 * 32);
    assert_eq!(Site::from_toml(&site.to_toml()), Ok(site));
}

#[test]
fn the_documented_site_is_read() {
    let text = include_str!("../../../Documentation/site-format.rst");
    let (_, block) = text.split_once(".. code-block:: toml\n").unwrap();
    let lines = block.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let toml: Vec<_> = lines.map(str::trim).collect();
    let site = Site::from_toml(&toml.join("\n")).unwrap();
    assert_eq!((site.nodes.len(), site.limits.len(), site.pools.len()), (4, 1, 1));
    // Requests, as far as the line with the grammar.
    let requests = text.lines().filter_map(|line| line.strip_prefix("    rset="));
    let requests: Vec<_> = requests.filter(|text| !text.contains('[')).collect();
    assert_eq!(requests.len(), 1);
    for request in requests {
        request.parse::<pbs_resources::Rset>().unwrap();
    }
}
