// SPDX-License-Identifier: Apache-2.0
#include "acc/remote/job_spec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "acc/base/json_number.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/text.hpp"
#include "acc/config/value.hpp"

namespace acc::launcher {
namespace {

using acc::to_characters;

// A text is not always UTF-8, as JSON is.
std::vector<std::string> to_characters(const std::vector<std::string>& texts) {
  std::vector<std::string> result;
  for (const std::string& text : texts) result.push_back(to_characters(text));
  return result;
}

std::string text_at(const Value& json, const char* name) {
  return to_bytes(json.at(name).get<std::string>());
}

std::vector<std::string> texts_at(const Value& json, const char* name) {
  std::vector<std::string> result;
  for (const Value& text : json.at(name)) result.push_back(to_bytes(text.get<std::string>()));
  return result;
}

[[noreturn]] void refuse_message(std::string_view reason) {
  // The library quotes what it has read last, however long that is.
  constexpr std::size_t kMaxReason = 200;
  throw Error(
      {.kind = ErrorKind::system,
       .what = fmt::format("acc sent no message that this one knows: {}", shorten(reason, kMaxReason))});
}

template <class Number>
Number number_in(const Value& json) {
  const auto number = whole_number<Number>(json);
  if (!number) refuse_message("it has an impossible number");
  return *number;
}

template <class T>
Value to_value(const std::optional<EngineValue<T>>& value) {
  if (!value) return nullptr;
  if constexpr (std::is_same_v<T, std::string>) {
    return {{"value", to_characters(value->value)}, {"origin", to_characters(value->origin)}};
  } else {
    return {{"value", value->value}, {"origin", to_characters(value->origin)}};
  }
}

template <class T>
std::optional<EngineValue<T>> engine_value_at(const Value& json, const char* name) {
  const Value& value = json.at(name);
  if (value.is_null()) return std::nullopt;
  if constexpr (std::is_same_v<T, std::string>) {
    return EngineValue<T>{text_at(value, "value"), text_at(value, "origin")};
  } else {
    return EngineValue<T>{number_in<T>(value.at("value")), text_at(value, "origin")};
  }
}

Value to_value(const HostAllocation& host) {
  const Engine& engine = host.engine;
  return {{"flag", to_characters(engine.name)},     {"node", to_characters(engine.node)},
          {"rank", to_value(engine.rank)},          {"size", to_value(engine.size)},
          {"master", to_value(engine.master_addr)}, {"slots", to_value(host.slots)},
          {"all_slots", to_value(host.all_slots)}};
}

HostAllocation host_at(const Value& json) {
  HostAllocation host;
  host.engine.family = EngineFamily::hosts;
  host.engine.name = text_at(json, "flag");
  host.engine.node = text_at(json, "node");
  host.engine.rank = host.engine.node_rank = engine_value_at<int>(json, "rank");
  host.engine.size = host.engine.num_nodes = engine_value_at<int>(json, "size");
  host.engine.master_addr = engine_value_at<std::string>(json, "master");
  host.slots = engine_value_at<int>(json, "slots");
  host.all_slots = engine_value_at<int>(json, "all_slots");
  return host;
}

// Ends the exceptions of the JSON library.
template <class Parse>
auto parse(std::string_view text, Parse read) {
  try {
    return read(Value::parse(text));
  } catch (const Value::exception& error) {
    refuse_message(error.what());
  }
}

// Addresses that mean another machine, or none, elsewhere.
bool is_local(const std::string& address) {
  return is_loopback(address) || address.starts_with("fe80:");
}

}  // namespace

std::string to_json(const JobSpec& spec) {
  Value environment = Value::object();
  for (const auto& [name, value] : spec.environment.variables())
    environment[to_characters(name)] = to_characters(value);
  Value json = {{"acc", spec.version},
                {"torchrun", spec.dialect == Dialect::torchrun},
                {"replaced", spec.replaced},
                {"words", to_characters(spec.words)},
                {"folder", to_characters(spec.folder.string())},
                {"environment", std::move(environment)},
                {"host", to_value(spec.host)},
                {"silence", spec.silence.count()}};
  if (spec.config) {
    json["config"] = {{"path", to_characters(spec.config->path.string())},
                      {"text", to_characters(spec.config->text)}};
  }
  return json.dump();
}

JobSpec parse_job_spec(std::string_view text) {
  return parse(text, [](const Value& json) {
    JobSpec spec = {.version = json.at("acc").get<std::string>(),
                    .dialect = json.at("torchrun").get<bool>() ? Dialect::torchrun : Dialect::launch,
                    .replaced = json.at("replaced").get<std::string>(),
                    .words = texts_at(json, "words"),
                    .folder = text_at(json, "folder"),
                    .host = host_at(json.at("host")),
                    .silence = std::chrono::milliseconds(number_in<std::int64_t>(json.at("silence")))};
    for (const auto& [name, value] : json.at("environment").items())
      spec.environment.set(to_bytes(name), to_bytes(value.get<std::string>()));
    if (const auto config = json.find("config"); config != json.end()) {
      spec.config = ConfigText{.path = text_at(*config, "path"), .text = text_at(*config, "text")};
    }
    return spec;
  });
}

std::string version_of_spec(std::string_view text) {
  const Value json = Value::parse(text, nullptr, false);
  const auto version = json.is_object() ? json.find("acc") : json.end();
  return version != json.end() && version->is_string() ? version->get<std::string>() : "";
}

std::string to_json(const HostReady& ready) {
  return Value{{"host", to_characters(ready.host_name)},
               {"addresses", to_characters(ready.addresses)},
               {"client", to_characters(ready.client)},
               {"port", ready.port},
               {"grace", ready.grace.count()}}
      .dump();
}

HostReady parse_host_ready(std::string_view text) {
  return parse(text, [](const Value& json) {
    return HostReady{.host_name = text_at(json, "host"),
                     .addresses = texts_at(json, "addresses"),
                     .client = text_at(json, "client"),
                     .port = number_in<std::uint16_t>(json.at("port")),
                     .grace = std::chrono::milliseconds(number_in<std::int64_t>(json.at("grace")))};
  });
}

std::string to_json(const Refusal& refusal) {
  Value problems = Value::array();
  for (const Problem& one : refusal.problems) {
    problems.push_back({{"what", to_characters(one.what)},
                        {"where", to_characters(one.where)},
                        {"hint", to_characters(one.hint)}});
  }
  return Value{{"kind", static_cast<int>(refusal.kind)}, {"problems", std::move(problems)}}.dump();
}

Refusal parse_refusal(std::string_view text) {
  return parse(text, [](const Value& json) {
    const int kind = number_in<int>(json.at("kind"));
    const bool known = kind >= 0 && kind <= static_cast<int>(ErrorKind::rendezvous);
    Refusal refusal = {.kind = known ? static_cast<ErrorKind>(kind) : ErrorKind::system};
    for (const Value& one : json.at("problems"))
      refusal.problems.push_back({text_at(one, "what"), text_at(one, "where"), text_at(one, "hint")});
    return refusal;
  });
}

std::string to_json(const StartOrder& order) {
  return Value{{"address", to_characters(order.address)},
               {"port", order.port},
               {"run_id", to_characters(order.run_id)}}
      .dump();
}

StartOrder parse_start_order(std::string_view text) {
  return parse(text, [](const Value& json) {
    return StartOrder{.address = text_at(json, "address"),
                      .port = number_in<std::uint16_t>(json.at("port")),
                      .run_id = text_at(json, "run_id")};
  });
}

int parse_exit_code(std::string_view text) {
  constexpr int kMax = 255;
  const auto code = parse_integer(text);
  if (!code || *code < 0 || *code > kMax)
    throw Error({.kind = ErrorKind::system, .what = fmt::format("'{}' is not an exit code", shorten(text))});
  return static_cast<int>(*code);
}

std::string meeting_address(const std::vector<HostReady>& hosts) {
  const HostReady& first = hosts.front();
  const bool one_machine =
      std::ranges::all_of(hosts, [&](const HostReady& host) { return host.host_name == first.host_name; });
  for (const HostReady& other : hosts) {
    const bool seen = !other.client.empty() && !is_local(other.client);
    if (seen && contains(first.addresses, other.client)) return other.client;
  }
  const auto found = std::ranges::find_if_not(first.addresses, is_local);
  if (one_machine || found == first.addresses.end())
    return first.addresses.empty() ? "127.0.0.1" : first.addresses.front();
  return *found;
}

}  // namespace acc::launcher
