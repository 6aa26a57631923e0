// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/node_message.hpp"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <tuple>
#include <type_traits>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/json_number.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/text.hpp"

namespace acc::launcher {
namespace {

using Json = nlohmann::json;

// A field of a message, and its name in JSON. Those names stay as they are: nodes of an older acc read them.
template <typename Type, typename Value>
struct Field {
  const char* name;
  Value Type::* member;
};
template <typename Type, typename Value>
Field(const char*, Value Type::*) -> Field<Type, Value>;

template <typename Type>
constexpr auto kFields = nullptr;
template <>
constexpr auto kFields<Round> =
    std::tuple(Field{"machine_rank", &Round::machine_rank}, Field{"num_machines", &Round::num_machines},
               Field{"first_rank", &Round::first_rank}, Field{"world_size", &Round::world_size},
               Field{"first_role_rank", &Round::first_role_rank},
               Field{"role_world_size", &Round::role_world_size}, Field{"master_addr", &Round::master_addr},
               Field{"master_port", &Round::master_port}, Field{"use_agent_store", &Round::use_agent_store});
template <>
constexpr auto kFields<RoundReady> =
    std::tuple(Field{"round", &RoundReady::round}, Field{"restarts", &RoundReady::restarts});
template <>
constexpr auto kFields<StepsReached> =
    std::tuple(Field{"known", &StepsReached::is_known}, Field{"steps", &StepsReached::steps},
               Field{"over_restarts", &StepsReached::counts_over_restarts});
template <>
constexpr auto kFields<Stall> =
    std::tuple(Field{"first", &Stall::first}, Field{"restarts", &Stall::restarts});
template <>
constexpr auto kFields<RoundOver> =
    std::tuple(Field{"again", &RoundOver::restart}, Field{"text", &RoundOver::text},
               Field{"failure", &RoundOver::failure}, Field{"exit_code", &RoundOver::exit_code},
               Field{"reached", &RoundOver::reached}, Field{"reason", &RoundOver::reason});
template <>
constexpr auto kFields<NodeInfo> =
    std::tuple(Field{"host", &NodeInfo::host}, Field{"addr", &NodeInfo::addr}, Field{"pid", &NodeInfo::pid},
               Field{"node_rank", &NodeInfo::node_rank}, Field{"role", &NodeInfo::role},
               Field{"workers", &NodeInfo::workers}, Field{"store_port", &NodeInfo::store_port},
               Field{"link_port", &NodeInfo::node_port}, Field{"protocol", &NodeInfo::protocol},
               Field{"addresses", &NodeInfo::addresses}, Field{"seen_at", &NodeInfo::seen_at});
template <>
constexpr auto kFields<NodeHistory> =
    std::tuple(Field{"round", &NodeHistory::round}, Field{"restarts", &NodeHistory::restarts},
               Field{"asked", &NodeHistory::asked_port}, Field{"dropped", &NodeHistory::dropped_round},
               Field{"stall", &NodeHistory::stall});
template <>
constexpr auto kFields<Challenge> = std::tuple(Field{"nonce", &Challenge::nonce});
template <>
constexpr auto kFields<Proof> = std::tuple(Field{"nonce", &Proof::nonce}, Field{"proof", &Proof::proof});
template <>
constexpr auto kFields<Hello> =
    std::tuple(Field{"version", &Hello::version}, Field{"run_id", &Hello::run_id},
               Field{"node", &Hello::node}, Field{"is_hub", &Hello::is_coordinator},
               Field{"history", &Hello::history}, Field{"proof", &Hello::proof});
template <>
constexpr auto kFields<Join> =
    std::tuple(Field{"store_port", &Join::store_port}, Field{"addresses", &Join::addresses});
template <>
constexpr auto kFields<WorkerFailed> =
    std::tuple(Field{"round", &WorkerFailed::round}, Field{"failure", &WorkerFailed::failure});
template <>
constexpr auto kFields<RoundEntered> = std::tuple(Field{"round", &RoundEntered::round});
template <>
constexpr auto kFields<WorkersDone> = std::tuple(Field{"round", &WorkersDone::round});
template <>
constexpr auto kFields<Leave> = std::tuple(Field{"why", &Leave::reason}, Field{"deposed", &Leave::superseded},
                                           Field{"exit_code", &Leave::exit_code});
template <>
constexpr auto kFields<RoundBegins> =
    std::tuple(Field{"number", &RoundBegins::number}, Field{"ready", &RoundBegins::ready},
               Field{"heirs", &RoundBegins::successors}, Field{"hub", &RoundBegins::coordinator},
               Field{"nodes", &RoundBegins::nodes}, Field{"clients", &RoundBegins::clients},
               Field{"places", &RoundBegins::addresses}, Field{"stall", &RoundBegins::stall});
template <>
constexpr auto kFields<RoundEnds> = std::tuple(Field{"over", &RoundEnds::verdict});
template <>
constexpr auto kFields<Dropped> = std::tuple(Field{"why", &Dropped::reason});
template <>
constexpr auto kFields<Moved> = std::tuple(Field{"addr", &Moved::addr}, Field{"link_port", &Moved::node_port},
                                           Field{"another_job", &Moved::is_another_job});
template <>
constexpr auto kFields<Full> = std::tuple();
template <>
constexpr auto kFields<JobEnds> = std::tuple();
template <>
constexpr auto kFields<Waiting> = std::tuple(
    Field{"text", &Waiting::text}, Field{"heirs", &Waiting::successors}, Field{"spare", &Waiting::spare});
template <>
constexpr auto kFields<EndNotice> =
    std::tuple(Field{"signal", &EndNotice::signal}, Field{"host", &EndNotice::host});
// The node and its host are the coordinator's to say.
template <>
constexpr auto kFields<NodeProgress> =
    std::tuple(Field{"round", &NodeProgress::round}, Field{"ranks", &NodeProgress::ranks});
template <>
constexpr auto kFields<SlowRank> =
    std::tuple(Field{"rank", &SlowRank::rank}, Field{"section", &SlowRank::section});
template <>
constexpr auto kFields<StopJob> = std::tuple(Field{"exit_code", &StopJob::exit_code});
template <>
constexpr auto kFields<SlowRanks> =
    std::tuple(Field{"round", &SlowRanks::round}, Field{"ranks", &SlowRanks::ranks});
template <>
constexpr auto kFields<RanksWanted> = std::tuple(Field{"round", &RanksWanted::round});
template <>
constexpr auto kFields<PeerNode> =
    std::tuple(Field{"node_rank", &PeerNode::node_rank}, Field{"host", &PeerNode::host},
               Field{"workers", &PeerNode::workers}, Field{"first_rank", &PeerNode::first_rank},
               Field{"reports", &PeerNode::reports});
template <>
constexpr auto kFields<Peers> = std::tuple(Field{"round", &Peers::round}, Field{"nodes", &Peers::nodes});
template <>
constexpr auto kFields<RankReport> =
    std::tuple(Field{"round", &RankReport::round}, Field{"node_rank", &RankReport::node_rank},
               Field{"ranks", &RankReport::ranks});
template <>
constexpr auto kFields<NodeHang> = std::tuple(
    Field{"round", &NodeHang::round}, Field{"stage", &NodeHang::stage}, Field{"number", &NodeHang::number});
template <>
constexpr auto kFields<JobHang> = std::tuple(Field{"round", &JobHang::round}, Field{"stage", &JobHang::stage},
                                             Field{"number", &JobHang::number});
template <>
constexpr auto kFields<Heartbeat> = std::tuple();

template <typename Type>
concept HasFields = !std::same_as<decltype(kFields<Type>), const std::nullptr_t>;

}  // namespace

template <HasFields Type>
void to_json(Json& json, const Type& value) {
  json = Json::object();
  std::apply([&](const auto&... field) { ((json[field.name] = value.*field.member), ...); }, kFields<Type>);
}

namespace {

[[noreturn]] void fail(const std::string& reason) {
  throw Error({.kind = ErrorKind::rendezvous, .what = "a node sent an invalid message: " + reason});
}

template <typename Value>
void read_value(const Json& json, Value& value) {
  if constexpr (std::integral<Value> && !std::same_as<Value, bool>) {
    const auto number = whole_number<Value>(json);
    if (!number) fail("it has an impossible number");
    value = *number;
  } else if constexpr (std::is_enum_v<Value>) {
    std::underlying_type_t<Value> number = {};
    read_value(json, number);
    value = static_cast<Value>(number);
  } else {
    json.get_to(value);
  }
}

}  // namespace

// A field that is absent has its default: another version of acc does not know it.
template <HasFields Type>
void from_json(const Json& json, Type& value) {
  if (!json.is_object()) fail("it lacks an object");
  const auto read = [&](const auto& field) {
    if (const auto found = json.find(field.name); found != json.end())
      read_value(*found, value.*field.member);
  };
  std::apply([&](const auto&... field) { (read(field), ...); }, kFields<Type>);
}

// Times in whole microseconds, to be short: a coordinator gets those of all ranks.
std::int64_t to_microseconds(std::chrono::nanoseconds time) {
  return std::chrono::floor<std::chrono::microseconds>(time).count();
}

void to_json(Json& json, const RankProgress& rank) {
  const Progress& progress = rank.progress;
  std::vector<std::int64_t> spent;
  for (const std::chrono::nanoseconds time : times_of_steps(progress)) spent.push_back(to_microseconds(time));
  json = {{"rank", rank.rank},
          {"pid", progress.pid},
          {"start", progress.process_start},
          {"steps", progress.steps},
          {"ended", to_microseconds(progress.step_ended)},
          {"spent", std::move(spent)}};
}

namespace {

// Numbers that no rank can have reached would overflow.
std::int64_t count_from_json(const Json& json) {
  constexpr std::int64_t kMax = std::int64_t{1} << 52U;  // 140 years in microseconds
  const auto count = whole_number<std::int64_t>(json);
  if (!count || *count < 0 || *count > kMax) fail("it has an impossible count");
  return *count;
}

}  // namespace

// A node of another acc may know other sections at the end.
void from_json(const Json& json, RankProgress& rank) {
  Progress& progress = rank.progress;
  read_value(json.at("rank"), rank.rank);
  read_value(json.at("pid"), progress.pid);
  read_value(json.at("start"), progress.process_start);
  progress.steps = count_from_json(json.at("steps"));
  progress.step_ended = std::chrono::microseconds(count_from_json(json.at("ended")));
  const auto spent = json.at("spent").get<std::vector<Json>>();
  for (std::size_t i = 0; i < std::min(spent.size(), progress.spent.size()); ++i)
    progress.spent[i] = std::chrono::microseconds(count_from_json(spent[i]));
}

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
constexpr std::string_view kName<RoundEntered> = "round_entered";
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
constexpr std::string_view kName<EndNotice> = "end_notice";
template <>
constexpr std::string_view kName<NodeProgress> = "progress";
template <>
constexpr std::string_view kName<SlowRanks> = "slow_ranks";
template <>
constexpr std::string_view kName<StopJob> = "stop_job";
template <>
constexpr std::string_view kName<RanksWanted> = "ranks_wanted";
template <>
constexpr std::string_view kName<Peers> = "peers";
template <>
constexpr std::string_view kName<RankReport> = "rank_report";
template <>
constexpr std::string_view kName<NodeHang> = "node_hang";
template <>
constexpr std::string_view kName<JobHang> = "job_hang";
template <>
constexpr std::string_view kName<Heartbeat> = "beat";

template <typename Kind>
bool read_as(const Json& json, std::string_view name, NodeMessage& message) {
  if (name != kName<Kind>) return false;
  Kind value;
  from_json(json, value);
  message = std::move(value);
  return true;
}

template <typename... Kinds>
bool read_any(const Json& json, std::string_view name, std::variant<Kinds...>& message) {
  return (read_as<Kinds>(json, name, message) || ...);
}

// More than any message has. Each level takes much more memory than its one letter.
constexpr int kMaxDepth = 16;
// The library quotes what it has read last, however long that is.
constexpr std::size_t kMaxReason = 200;

}  // namespace

std::vector<std::string> addresses_to_tell(const OwnNames& machine) {
  constexpr std::size_t kMaxAddresses = 128;
  std::vector<std::string> addresses = addresses_for_others(machine);
  if (addresses.size() > kMaxAddresses) addresses.clear();
  return addresses;
}

bool is_seen_directly(const NodeInfo& node) {
  if (node.addresses.empty()) return false;
  return node.seen_at.empty() || is_loopback(node.seen_at) || contains(node.addresses, node.seen_at);
}

bool is_same_process(const NodeInfo& first, const NodeInfo& second) {
  return first.addr == second.addr && first.pid == second.pid && first.node_port == second.node_port;
}

bool is_same_machine(const NodeInfo& first, const NodeInfo& second) {
  return first.addr == second.addr && first.host == second.host;
}

std::string encode(const NodeMessage& message) {
  const Json json = std::visit(
      [](const auto& content) {
        Json fields;
        to_json(fields, content);
        fields["message"] = kName<std::decay_t<decltype(content)>>;
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
    if (!read_any(json, name, message)) fail("unknown kind '" + shorten(name) + "'");
  } catch (const Json::exception& error) {
    fail(shorten(error.what(), kMaxReason));
  }
  return message;
}

}  // namespace acc::launcher
