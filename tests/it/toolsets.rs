//! Tests what each toolset of another memory server offers: its tools in order, a schema snapshot of each, and the
//! tools of a read-only server.

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::support::TestVault;

/// Gives the tools of a set.
fn tools(vault: &TestVault, args: &[&str]) -> Vec<Value> {
    let mut client = Client::start(vault, args);
    let list = client.request("tools/list", json!({}));
    client.finish();
    list["tools"].as_array().unwrap().clone()
}

/// Checks the tools of a set; those that read are marked by `r:`.
fn check(set: &str, expected: &[&str]) {
    let vault = TestVault::new(&[]);
    let named = |tools: &[Value]| -> Vec<String> {
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = tools(&vault, &["--toolset", set]);
    let expect: Vec<&str> = expected.iter().map(|name| name.trim_start_matches("r:")).collect();
    assert_eq!(named(&all), expect);
    for tool in &all {
        assert!(!tool["title"].as_str().unwrap().contains('_'), "{tool}");
        insta::assert_json_snapshot!(tool["name"].as_str().unwrap(), tool);
    }
    let reading = tools(&vault, &["--toolset", set, "--read-only"]);
    let expect: Vec<&str> = expected.iter().filter_map(|name| name.strip_prefix("r:")).collect();
    assert_eq!(named(&reading), expect);
    assert!(reading.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true));
}

#[test]
fn mem_lists_all_its_tools() {
    check(
        "mem",
        &[
            "write_mem",
            "r:read_mem",
            "edit_mem",
            "r:search_mem",
            "link_mem",
            "unlink_mem",
            "r:list_mems",
            "r:needs_review",
            "r:get_mem_stats",
            "fix_links",
            "reindex_mems",
            "r:get_usage_info",
            "r:get_flexsearch_config",
            "r:get_allowed_values",
            "r:get_current_date",
        ],
    );
}

#[test]
fn longterm_lists_all_its_tools() {
    check(
        "longterm",
        &[
            "save_memory",
            "r:search_memory",
            "r:get_all_memories",
            "update_memory",
            "r:search_by_type",
            "r:search_by_tags",
            "r:search_by_date_range",
            "delete_memory",
            "delete_all_memories",
            "r:memory_stats",
            "create_backup",
        ],
    );
}

#[test]
fn vector_lists_all_its_tools() {
    check(
        "vector",
        &[
            "store_memories",
            "update_memories",
            "delete_memories",
            "r:search_memories",
            "r:get_memories",
            "report_memory_usefulness",
            "store_handoff",
            "r:get_handoff",
            "set_waypoint",
            "r:get_waypoint",
            "index_conversations",
            "r:list_indexed_sessions",
            "reindex_session",
        ],
    );
}

#[test]
fn tiered_lists_all_its_tools() {
    check(
        "tiered",
        &[
            "memory_store",
            "r:memory_recall",
            "memory_forget",
            "memory_restore",
            "memory_pin",
            "memory_unpin",
            "r:memory_explain",
            "memory_set_context",
            "memory_clear_context",
        ],
    );
}

#[test]
fn rulebook_lists_all_its_tools() {
    check(
        "rulebook",
        &[
            "r:rulebook_memory_search",
            "r:rulebook_memory_timeline",
            "r:rulebook_memory_get",
            "rulebook_memory_save",
            "r:rulebook_memory_stats",
            "rulebook_memory_cleanup",
        ],
    );
}

#[test]
fn graph_lists_all_its_tools() {
    check(
        "graph",
        &[
            "create_entities",
            "create_relations",
            "add_observations",
            "delete_entities",
            "delete_observations",
            "delete_relations",
            "r:read_graph",
            "r:search_nodes",
            "r:open_nodes",
        ],
    );
}

#[test]
fn memories_lists_its_tool() {
    check("memories", &["memory"]);
}
