// SPDX-License-Identifier: Apache-2.0
// What a job, the nodes of others in it, and the workers' flight recorders answer: it can be shown, moves no
// cursor, and is the same when it is sent on.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>

#include "acc/control/control_client.hpp"
#include "acc/control/flight_record.hpp"
#include "acc/control/job_table.hpp"
#include "acc/control/node_view.hpp"
#include "acc/control/step_history.hpp"
#include "fuzz/promise.hpp"

namespace {

namespace control = acc::launcher;
using nlohmann::json;

// JSON that was read can be written, however deep it is nested: it is small.
void check_job(const json& message) {
  const auto view = fuzz::value_or_error([&] { return control::job_view_from_json(message); });
  if (!view) return;
  const json again = to_json(*view);
  fuzz::require(to_json(control::job_view_from_json(again)) == again,
                "a view is the same when it is sent on");
  control::stop_text(*view, 1);
  if (view->importing) to_string(*view->importing);
  const std::string id = control::job_id(view->command, view->pid);
  fuzz::require(id.find('/') == std::string::npos && id.front() != '.', "an id is the name of a file", id);
  control::OutputRing ring;
  for (const std::string& word : view->command) ring.append(control::StreamName::out, word);
  fuzz::require(ring.read(0).bytes.size() <= ring.end(), "no more is kept than there was");
}

// As the agent of this node would tell another.
void check_reports(const control::OtherNodes& nodes) {
  for (const control::NodeView& node : nodes.nodes)
    for (const control::RankUsage& usage : node.usage) shown_state(node, usage);
  const auto again = control::other_nodes_from_json(to_json(control::reports_of({.other_nodes = nodes})));
  fuzz::require(again.nodes.size() == nodes.nodes.size() + 1, "nodes stay as many, beside this one");
}

void check_nodes(const json& message) {
  const auto nodes = fuzz::value_or_error([&] { return control::other_nodes_from_json(message); });
  if (!nodes) return;
  control::JobView job = {.world_size = 8};
  for (const std::string& line : lines_of_missing(job, *nodes))
    fuzz::require(line == acc::printable(line), "a line is printable", line);
  for (const control::NodeView& node : nodes->nodes) {
    fuzz::require(node.host == acc::printable(node.host), "a host is printable", node.host);
    fuzz::require(node.ranks.size() == node.usage.size(), "each rank has its use");
    to_json(node).dump();
  }
  check_reports(*nodes);
}

void check_history(const json& message) {
  try {
    const control::StepHistory history = control::step_history_from_json(message);
    fuzz::require(control::step_history_from_json(to_json(history)) == history,
                  "a history is the same when it is sent on");
  } catch (const json::exception&) {
    // Is promised.
  }
}

void check_calls(const json& message) {
  const auto calls = control::collective_calls(message);
  for (const auto& call : calls) {
    const std::string text = to_string(call);
    fuzz::require(text == acc::printable(text), "a call is printable", text);
  }
  if (const auto* call = control::pending_call(calls))
    control::with_pending("in all_reduce at a.py:4", *call);
  auto others = calls;
  for (auto& call : others) call.tensors = "float [1]";
  const std::string differing = control::differing_calls({{0, calls}, {1, {}}, {2, others}, {3, others}});
  fuzz::require(differing == acc::printable(differing), "calls that differ are printable", differing);
}

// A worker that answers so, when it is asked for its records.
void check_records(std::string_view answer) {
  const std::string path = control::flight_record_socket("/dev/shm/acc-fuzz-" + std::to_string(::getpid()));
  const acc::Descriptor worker(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  fuzz::require(::bind(worker.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    ::listen(worker.get(), 1) == 0,
                "a worker has a socket");
  {
    const std::jthread thread([&] {
      const acc::Descriptor connection(::accept4(worker.get(), nullptr, nullptr, SOCK_CLOEXEC));
      ::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    });
    const auto calls = control::read_flight_records(
        {{0, path}, {1, path + ".none"}}, std::chrono::steady_clock::now() + std::chrono::seconds(5));
    fuzz::require(!calls.contains(1), "a worker that is not there has no calls");
  }
  std::filesystem::remove(path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::array<int, 2> ends = {};
  fuzz::require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0,
                "a connection");
  control::ControlClient client{acc::Descriptor(ends[0])};
  {
    const acc::Descriptor job(ends[1]);
    ::send(job.get(), data, size, MSG_NOSIGNAL);
  }
  // A thread for each input would take most of the time.
  if (fuzz::text_of(data, size).starts_with("{\"records\"")) check_records(fuzz::text_of(data, size));
  bool is_open = true;
  while (is_open) {
    const auto message = fuzz::value_or_error([&] { return client.read_message(); });
    is_open = !message || message->has_value();
    if (!message || !*message) continue;
    check_job(**message);
    check_nodes(**message);
    check_history(**message);
    check_calls(**message);
  }
  return 0;
}
