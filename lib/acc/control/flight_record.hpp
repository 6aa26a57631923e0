// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace acc::launcher {

/// A collective that a rank has begun, as the flight recorder of torch's process groups knows it.
struct CollectiveCall {
  /// `all_reduce`, or `send 0->1`.
  std::string name = {};
  /// How many the rank has begun in the process group, this one included. All its ranks count alike;
  /// transfers between two ranks are counted by themselves.
  std::int64_t number = 0;
  bool between_two = false;
  /// The name of its process group, which all its ranks know it by, and its description; an empty
  /// description: the default group, or one without.
  std::string group = {};
  std::string description = {};
  /// What is sent: `float [4], float [2, 3]`.
  std::string tensors = {};
  bool has_ended = false;

  bool operator==(const CollectiveCall&) const = default;
};

/// `all_reduce 12 (float [4])`, `all_gather 3 of mesh_tp (float [4])`; printable().
std::string to_string(const CollectiveCall& call);

/// The calls of a record, oldest first: what _dump_fr_trace_json of torch._C._distributed_c10d returns (seen
/// with version 2.10 of its format). Empty for anything else.
std::vector<CollectiveCall> collective_calls(const nlohmann::json& record);

/// The oldest that has not ended; nullptr: all have.
const CollectiveCall* pending_call(const std::vector<CollectiveCall>& calls);

/// Where a rank stands, with the call that has not ended: `in all_reduce at train.py:4` becomes `in
/// all_reduce 12 (float [4]) at train.py:4`, and `in backward` becomes `in backward, all_reduce 12 (float
/// [4]) under way`.
std::string with_pending(std::string_view standing, const CollectiveCall& call);

/// The calls of one number in one process group that are not the same on all ranks and that somebody waits
/// for: `call 12 differs: all_reduce (float [2]) on rank 1; all_reduce (float [4]) on ranks 0, 2`. Empty:
/// there are none.
std::string differing_calls(const std::map<int, std::vector<CollectiveCall>>& calls_of_ranks);

/// The socket at which the worker with this page (ACC_PROGRESS) answers with its records: a JSON object
/// `{"records": [...]}` in one line, one record for each kind of process groups.
std::string flight_record_socket(const std::string& page);

/// Asks the workers that listen at these sockets, and waits for them until `deadline`. Those that do not
/// answer are left out, as are all that have no recorder.
std::map<int, std::vector<CollectiveCall>> read_flight_records(
    const std::map<int, std::string>& sockets_of_ranks, std::chrono::steady_clock::time_point deadline);

}  // namespace acc::launcher
