// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/node_message.hpp"

#include <nlohmann/json.hpp>

#include "acc/base/error.hpp"

namespace acc::launcher {

using Json = nlohmann::json;

// The names of the fields in JSON are those of the structs.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Round, machine_rank, num_machines, first_rank, world_size,
                                                first_role_rank, role_world_size, master_addr, master_port,
                                                use_agent_store)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RoundReady, round, restarts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RoundOver, again, text, failure, exit_code)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeInfo, host, addr, pid, node_rank, role, workers,
                                                store_port, link_port, addresses, seen_at)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeHistory, round, restarts, asked)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Challenge, nonce)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Proof, nonce, proof)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Hello, version, run_id, node, is_hub, history, proof)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Dropped, why)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Moved, addr, link_port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Join, store_port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WorkerFailed, round, failure)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WorkersDone, round)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Leave, why, deposed, exit_code)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RoundBegins, number, ready, heirs, hub, nodes, clients,
                                                places)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RoundEnds, over)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Waiting, text, heirs)

namespace {

template <typename Kind>
constexpr std::string_view kName = {};
template <>
constexpr std::string_view kName<Challenge> = "challenge";
template <>
constexpr std::string_view kName<Proof> = "proof";
template <>
constexpr std::string_view kName<Hello> = "hello";
template <>
constexpr std::string_view kName<Join> = "join";
template <>
constexpr std::string_view kName<WorkerFailed> = "failed";
template <>
constexpr std::string_view kName<WorkersDone> = "done";
template <>
constexpr std::string_view kName<Leave> = "leave";
template <>
constexpr std::string_view kName<RoundBegins> = "round_begins";
template <>
constexpr std::string_view kName<RoundEnds> = "round_ends";
template <>
constexpr std::string_view kName<Dropped> = "dropped";
template <>
constexpr std::string_view kName<Moved> = "moved";
template <>
constexpr std::string_view kName<Full> = "full";
template <>
constexpr std::string_view kName<JobEnds> = "job_ends";
template <>
constexpr std::string_view kName<Waiting> = "waiting";
template <>
constexpr std::string_view kName<Beat> = "beat";

void to_json(Json& json, const Full&) {
  json = Json::object();
}
void to_json(Json& json, const JobEnds&) {
  json = Json::object();
}
void to_json(Json& json, const Beat&) {
  json = Json::object();
}
void from_json(const Json&, Full&) {}
void from_json(const Json&, JobEnds&) {}
void from_json(const Json&, Beat&) {}

template <typename Kind>
bool take(const Json& json, std::string_view name, NodeMessage& message) {
  if (name != kName<Kind>) return false;
  Kind value;
  from_json(json, value);
  message = std::move(value);
  return true;
}

template <typename... Kinds>
bool take_any(const Json& json, std::string_view name, std::variant<Kinds...>& message) {
  return (take<Kinds>(json, name, message) || ...);
}

// Of what nodes say, and then some: each level costs much more memory than its one letter.
constexpr int kMaxDepth = 16;

[[noreturn]] void fail(const std::string& why) {
  throw Error({.kind = ErrorKind::rendezvous, .what = "a node sent what is no message: " + why});
}

}  // namespace

std::string encode(const NodeMessage& message) {
  const Json json = std::visit(
      [](const auto& one) {
        Json fields;
        to_json(fields, one);
        fields["message"] = kName<std::decay_t<decltype(one)>>;
        return fields;
      },
      message);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

NodeMessage decode(std::string_view line) {
  NodeMessage message;
  try {
    const Json json = Json::parse(line, [](int depth, Json::parse_event_t, const Json&) {
      if (depth > kMaxDepth) fail("it is nested too deeply");
      return true;
    });
    const auto name = json.at("message").get<std::string>();
    if (!take_any(json, name, message)) fail("'" + name + "'");
  } catch (const Json::exception& error) {
    fail(error.what());
  }
  return message;
}

}  // namespace acc::launcher
