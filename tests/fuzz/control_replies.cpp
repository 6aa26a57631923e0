// SPDX-License-Identifier: Apache-2.0
// What a job, the nodes of others in it, and the workers' flight recorders answer: it can be shown, moves no
// cursor, and is the same when it is sent on.
#include <sys/socket.h>

#include <array>

#include "acc/control/control_client.hpp"
#include "acc/control/flight_record.hpp"
#include "acc/control/job_table.hpp"
#include "acc/control/node_view.hpp"
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
}

void check_history(const json& message) {
  try {
    control::step_history_from_json(message);
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
  control::differing_calls({{0, calls}, {1, {}}});
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
