#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutate_rendezvous.py LIBRARY RESULT SOURCE...: writes RESULT/SOURCE with the faults below, and their names."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
sys.dont_write_bytecode = True
import mutation  # noqa: E402

MAJORITY = "options_.has_led ? size() + ended_with_absent_ > members : size() >= members"
COUNTS = "history.round == round && is_free"

# Name: source, what is replaced, and by what. What ends with a newline is statements.
MUTANTS = {
    # Which part of a job goes on.
    "half of the nodes may go on without the coordinator": (
        "rendezvous/succession.cpp", "2 * reached > nodes - dead", "2 * reached >= nodes - dead"),
    "a silent coordinator counts as ended": (
        "rendezvous/succession.cpp", "address == lost_address_ && (was_refused || was_closed_)",
        "address == lost_address_"),
    "a node of an earlier round counts": ("rendezvous/succession.cpp", COUNTS, "history.round > 0 && is_free"),
    "the old coordinator goes on with the smaller part": ("rendezvous/absent_nodes.cpp", MAJORITY, "false"),
    "nobody misses a silent node that has succeeded, when all begin anew": (
        "rendezvous/coordinator.cpp", "!has_succeeded || can_be_led_elsewhere", "!node.done"),
    "workers go on when the coordinator is lost": (
        "rendezvous/cluster_node.cpp", "  end_round(reason);\n  begin_looking(loss.peer_has_ended, reason);\n",
        "  begin_looking(loss.peer_has_ended, reason);\n"),
    "a host believes no claim": ("rendezvous/cluster_node.cpp", "(is_successor || is_named)", "false"),
    # Rounds.
    "a round begins before all nodes have stopped": (
        "rendezvous/coordinator.cpp", "is_smaller_part() || !not_ready_.empty() || survivors_ > 0",
        "is_smaller_part() || survivors_ > 0"),
    "a round goes on without a node that was lost": (
        "rendezvous/coordinator.cpp", "  group_changed(text, code);\n", ""),
    "a round has more nodes than the job": (
        "rendezvous/c10d_machine.cpp", "state.participants.size() == settings_.max_nodes",
        "state.participants.size() > settings_.max_nodes"),
    "a round has too few nodes": (
        "rendezvous/c10d_machine.cpp", "nodes < settings_.min_nodes || nodes > settings_.max_nodes",
        "nodes > settings_.max_nodes"),
    "a node that was lost stays in the next round": (
        "rendezvous/static_backend.cpp",
        "  impl_->store.delete_key(impl_->prefix + role_info_key(node.node_rank), [](StoreOutcome, bool) {});\n",
        ""),
    "a restart is not counted": (
        "rendezvous/coordinator.cpp",
        "  if (options_.plan.min_nodes == options_.plan.max_nodes) ++restarts_;\n", ""),
    # Ends.
    "a failure is told to nobody": (
        "rendezvous/coordinator.cpp", "  ++restarts_;\n  end_round(verdict);\n", "  ++restarts_;\n"),
    "the job is done when one node has succeeded": (
        "rendezvous/coordinator.cpp", "!not_done_.empty() || finishing_", "finishing_"),
    "the end of the job is told to nobody": ("rendezvous/coordinator.cpp", "    send_to_all(JobEnds{});\n", ""),
    # Waiting.
    "nodes send no heartbeats": ("rendezvous/node_connection.cpp", "  if (!closing_) send(Heartbeat{});\n", ""),
    "a node waits longer than the join timeout": (
        "rendezvous/cluster_node.cpp", "now >= node_.join_deadline", "false"),
    "a node that was a spare waits for ever": (
        "rendezvous/cluster_node.cpp",
        "spare ? static_cast<void>(reminder_.cancel()) : begin_join_timeout()",
        "static_cast<void>(reminder_.cancel())"),
    "a node whose machine was off finds its rank taken": (
        "rendezvous/host.cpp",
        "  if (const auto holder = coordinator_->unproven_holder(member->hello.node))\n"
        "    return wait_for_holder(*holder, member);\n", ""),
    # etcd.
    "a claim takes the key of a host that lives": (
        "rendezvous/etcd_coordinator_key.cpp",
        "key->revision == 0 || key->value == address_ || key->value == replaced_address_", "true"),
    "nobody keeps the key alive": (
        "rendezvous/etcd_coordinator_key.cpp",
        "    keep_alive_later(kKeepAliveInterval);\n    answer(ClaimResult::Outcome::acquired);\n",
        "    answer(ClaimResult::Outcome::acquired);\n"),
    "a host does not look who has the key": (
        "rendezvous/etcd_coordinator_key.cpp", "!key || key->lease != lease_", "!key"),
    "a node leaves its job for one that found the key free": (
        "rendezvous/coordinator_lost.cpp", "address != coordinator && !node.last_round.has_leader_at(address)", "false"),
    # A file.
    "a node that is dead in a file is never removed": (
        "rendezvous/c10d_machine.cpp", "now.running - heartbeat.read_time.running < timeout", "true"),
    "a node looks at the state without a pause": (
        "rendezvous/c10d_machine.cpp", "now.running < last_call_end", "true"),
    "an incomplete entry is written over": (
        "store/file_store.cpp",
        "  if (!refresh(shared_file) && !cut_off_entry(shared_file)) return retry_later();\n",
        "  refresh(shared_file);\n"),
    "an incomplete entry blocks all nodes": (
        "store/file_store.cpp", "now - incomplete->since < options.writing_time", "true"),
    "nobody notices that the file is another one": (
        "store/file_store.cpp",
        "identity && (*identity != now.identity || now.size < std::max(position, least_size))", "false"),
    # The store.
    "who waits for keys that are there waits on": ("store/waits.cpp", "wait.missing > 0", "true"),
}

mutation.write_copies(MUTANTS)
