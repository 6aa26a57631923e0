// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/tracking/event_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "acc/base/machine.hpp"
#include "acc/runtime/tracking/appended_file.hpp"

namespace acc::detail {
namespace {

constexpr std::int64_t kTypeString = 7;      // tensorboard.DT_STRING
constexpr std::int64_t kParameterText = 1;   // tensorboard.hparams.DATA_TYPE_STRING
constexpr std::int64_t kParameterFloat = 3;  // tensorboard.hparams.DATA_TYPE_FLOAT64
constexpr std::int64_t kSuccess = 1;         // tensorboard.hparams.STATUS_SUCCESS

std::string hyper_parameter_event(double seconds, std::string_view tag, int field, const Protobuf& content) {
  const Protobuf plugin = Protobuf().bytes(1, "hparams").message(2, Protobuf().message(field, content));
  return summary_event({.seconds = seconds},
                       Protobuf().bytes(1, tag).message(9, Protobuf().message(1, plugin)));
}

double number_of(const TrackedScalar& scalar) {
  if (const auto* number = std::get_if<double>(&scalar)) return *number;
  if (const auto* whole = std::get_if<std::int64_t>(&scalar)) return static_cast<double>(*whole);
  return std::get<bool>(scalar) ? 1 : 0;
}

std::string text_event(const EventTime& time, std::string_view tag, std::string_view text) {
  const Protobuf shape = Protobuf().message(2, Protobuf().number(1, std::int64_t{1}));
  const Protobuf tensor = Protobuf().number(1, kTypeString).message(2, shape).bytes(8, text);
  const Protobuf metadata = Protobuf().message(1, Protobuf().bytes(1, "text"));
  return summary_event(
      time, Protobuf().bytes(1, std::string(tag) + "/text_summary").message(8, tensor).message(9, metadata));
}

}  // namespace

std::string summary_event(const EventTime& time, const Protobuf& value) {
  Protobuf event;
  event.number(1, time.seconds);
  if (time.step) event.number(2, *time.step);
  return event.message(5, Protobuf().message(1, value)).text();
}

std::string version_event(double seconds) {
  return Protobuf().number(1, seconds).bytes(3, "brain.Event:2").text();
}

std::string value_event(const EventTime& time, std::string_view tag, const TrackedScalar& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text_event(time, tag, *text);
  return summary_event(time, Protobuf().bytes(1, tag).number(2, static_cast<float>(number_of(value))));
}

std::vector<std::string> hyper_parameter_events(double seconds, const TrackedConfig& config) {
  Protobuf experiment;
  Protobuf start;
  for (const auto& [name, value] : config) {
    const auto* text = std::get_if<std::string>(&value);
    experiment.message(
        4, Protobuf().bytes(1, name).number(4, text != nullptr ? kParameterText : kParameterFloat));
    // A google.protobuf.Value.
    const Protobuf as_value =
        text != nullptr ? Protobuf().bytes(3, *text) : Protobuf().number(2, number_of(value));
    start.message(1, Protobuf().bytes(1, name).message(2, as_value));
  }
  return {hyper_parameter_event(seconds, "_hparams_/experiment", 2, experiment),
          hyper_parameter_event(seconds, "_hparams_/session_start_info", 3, start),
          hyper_parameter_event(seconds, "_hparams_/session_end_info", 4, Protobuf().number(1, kSuccess))};
}

namespace {

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ (crc & 1U) * 0x82f63b78U;
    table[i] = crc;
  }
  return table;
}();

// TensorFlow stores CRCs rotated and offset, since a CRC of bytes that contain a CRC is weak.
std::uint32_t masked_crc32c(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return (crc >> 15U | crc << 17U) + 0xa282ead8U;
}

// The counter makes the names of files of the same second unique.
std::string new_name() {
  static std::atomic<int> made = 0;
  return fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<std::int64_t>(seconds_since_1970()),
                     host_name(), ::getpid(), made++);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) crc = crc >> 8U ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xffU];
  return ~crc;
}

std::string framed_record(std::string_view bytes) {
  std::string record;
  append_little_endian(record, bytes.size(), 8);
  append_little_endian(record, masked_crc32c(record), 4);
  record += bytes;
  append_little_endian(record, masked_crc32c(bytes), 4);
  return record;
}

EventFile::EventFile(const std::filesystem::path& folder) : file_(folder / new_name()) {
  append(version_event(seconds_since_1970()));
}

}  // namespace acc::detail
