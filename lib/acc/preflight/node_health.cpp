// SPDX-License-Identifier: Apache-2.0
#include "acc/preflight/node_health.hpp"

#include <concepts>

#include "acc/preflight/node_json.hpp"
#include "acc/preflight/xid_json.hpp"

namespace acc::launcher {

Json to_json(const GpuHealth& health) {
  return {{"index", health.gpu.index},
          {"name", health.gpu.name},
          {"uuid", health.gpu.uuid},
          {"pci_address", health.gpu.pci_address},
          {"lost", health.lost},
          {"memory_bytes", health.gpu.memory_bytes},
          {"free_memory_bytes", or_null(health.free_bytes)},
          {"uncorrected_ecc_errors", or_null(health.uncorrected_errors)},
          {"needs_reset", health.needs_reset},
          {"needs_repair", health.needs_repair},
          {"slowdowns", health.slowdowns}};
}

Json to_json(const ResolvedName& name) {
  return {{"name", name.name}, {"addresses", name.lookup.addresses}, {"error", name.lookup.error}};
}

Json to_json(const NodeHealth& node) {
  Json gpus = Json::array();
  for (const GpuHealth& gpu : node.gpus) gpus.push_back(to_json(gpu));
  return {{"rank", node.rank},
          {"host", node.host},
          {"workers", node.workers},
          {"driver", node.driver},
          {"gpus", gpus},
          {"xids", or_null(node.xids)},
          {"memory_bytes", node.memory_bytes},
          {"free_memory_bytes", node.free_memory_bytes},
          {"log_folder", node.log_folder},
          {"free_disk_bytes", or_null(node.free_disk_bytes)},
          {"disk_error", node.disk_error},
          {"meeting", to_json(node.meeting)},
          {"own_name", node.own_name ? to_json(*node.own_name) : Json()},
          {"address", node.address},
          {"port", node.port},
          {"unanswered", node.unanswered}};
}

Json to_json(const ConnectionCheck& connection) {
  return {{"from", connection.from},
          {"to", connection.to},
          {"error", connection.error},
          {"clock_offset_seconds", connection.clock_offset},
          {"round_trip_seconds", connection.round_trip}};
}

Json to_json(const Transfer& transfer) {
  return {{"from", transfer.from},
          {"to", transfer.to},
          {"bytes_per_second", or_null(transfer.bytes_per_second)},
          {"error", transfer.error}};
}

namespace {

template <typename Value>
Value value_of(const Json& json) {
  if constexpr (std::integral<Value> && !std::same_as<Value, bool>)
    return exact_number<Value>(json);
  else
    return json.get<Value>();
}

template <typename Value>
void read(const Json& object, const char* name, Value& value) {
  value = value_of<Value>(object.at(name));
}

template <typename Value>
void read(const Json& object, const char* name, std::optional<Value>& value) {
  if (const Json& one = object.at(name); !one.is_null()) value = value_of<Value>(one);
}

GpuHealth read_gpu(const Json& object) {
  GpuHealth health;
  read(object, "index", health.gpu.index);
  read(object, "name", health.gpu.name);
  read(object, "uuid", health.gpu.uuid);
  read(object, "pci_address", health.gpu.pci_address);
  read(object, "lost", health.lost);
  read(object, "memory_bytes", health.gpu.memory_bytes);
  read(object, "free_memory_bytes", health.free_bytes);
  read(object, "uncorrected_ecc_errors", health.uncorrected_errors);
  read(object, "needs_reset", health.needs_reset);
  read(object, "needs_repair", health.needs_repair);
  read(object, "slowdowns", health.slowdowns);
  return health;
}

ResolvedName read_name(const Json& object) {
  ResolvedName name;
  read(object, "name", name.name);
  read(object, "addresses", name.lookup.addresses);
  read(object, "error", name.lookup.error);
  return name;
}

template <typename Value>
std::string encode_all(const std::vector<Value>& values) {
  Json list = Json::array();
  for (const Value& value : values) list.push_back(to_json(value));
  return to_text(list);
}

}  // namespace

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string encode(const NodeHealth& node) {
  return to_text(to_json(node));
}

std::string encode(const std::vector<ConnectionCheck>& connections) {
  return encode_all(connections);
}

std::string encode(const std::vector<Transfer>& transfers) {
  return encode_all(transfers);
}

NodeHealth decode_health(std::string_view text) {
  const Json object = Json::parse(text);
  NodeHealth node;
  read(object, "rank", node.rank);
  read(object, "host", node.host);
  read(object, "workers", node.workers);
  read(object, "driver", node.driver);
  for (const Json& gpu : object.at("gpus")) node.gpus.push_back(read_gpu(gpu));
  read(object, "xids", node.xids);
  read(object, "memory_bytes", node.memory_bytes);
  read(object, "free_memory_bytes", node.free_memory_bytes);
  read(object, "log_folder", node.log_folder);
  read(object, "free_disk_bytes", node.free_disk_bytes);
  read(object, "disk_error", node.disk_error);
  node.meeting = read_name(object.at("meeting"));
  if (const Json& name = object.at("own_name"); !name.is_null()) node.own_name = read_name(name);
  read(object, "address", node.address);
  read(object, "port", node.port);
  read(object, "unanswered", node.unanswered);
  return node;
}

std::vector<ConnectionCheck> decode_connections(std::string_view text) {
  std::vector<ConnectionCheck> connections;
  for (const Json& object : Json::parse(text)) {
    ConnectionCheck& connection = connections.emplace_back();
    read(object, "from", connection.from);
    read(object, "to", connection.to);
    read(object, "error", connection.error);
    read(object, "clock_offset_seconds", connection.clock_offset);
    read(object, "round_trip_seconds", connection.round_trip);
  }
  return connections;
}

std::vector<Transfer> decode_transfers(std::string_view text) {
  std::vector<Transfer> transfers;
  for (const Json& object : Json::parse(text)) {
    Transfer& transfer = transfers.emplace_back();
    read(object, "from", transfer.from);
    read(object, "to", transfer.to);
    read(object, "bytes_per_second", transfer.bytes_per_second);
    read(object, "error", transfer.error);
  }
  return transfers;
}

}  // namespace acc::launcher
