//! Nodes of one Galera cluster.

use crate::journals::{Holder, Journals};
use crate::servers::mariadb::MariaDb;

/// All nodes have the same records, so a client of another node does not have to wait.
#[test]
fn both_nodes_lease() {
    let (nodes, journals) = (MariaDb::cluster(), Journals::new());
    let address = |at: usize| format!("{}?ttl=3s&wait=60s", nodes[at].url());
    let mut first = journals.start(&address(0));
    first.node();
    let mut holders: Vec<_> = [1, 0, 1].iter().map(|&at| journals.start(&address(at))).collect();
    for holder in &mut holders {
        holder.node();
        assert!(!holder.text().contains("event waiting"), "{}", holder.text());
    }
    holders.push(first);
    let marks: Vec<_> = holders.iter().map(Holder::mark).collect();
    for (holder, mark) in holders.iter_mut().zip(marks) {
        holder.tell("stream");
        holder.wait_for_ids(mark, 300);
        holder.holds();
    }
    journals.assert_unique(1_200);
}
