// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "acc/runtime/tracking/appended_file.hpp"
#include "acc/runtime/tracking/tracker.hpp"

namespace acc::detail {

/// The time of an event in seconds since 1970, and its step.
struct EventTime {
  double seconds = 0;
  std::optional<std::int64_t> step = {};
};

// Serialized Event messages of TensorBoard (tensorboard/compat/proto/event.proto, summary.proto, tensor.proto
// and plugins/hparams/*.proto), with the content that torch.utils.tensorboard writes.

/// The first event of a file.
std::string version_event(double seconds);

/// An event with text, as SummaryWriter.add_text writes it, or with a number, as add_scalar.
std::string value_event(const EventTime& time, std::string_view tag, const TrackedScalar& value);

/// The three events of SummaryWriter.add_hparams: the names of the hyper-parameters, their values, and the
/// end of the session. Bools are written as numbers.
std::vector<std::string> hyper_parameter_events(double seconds, const TrackedConfig& config);

/// Appends the `bytes` low bytes of `number` in little-endian order.
inline void append_little_endian(std::string& out, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xffU);
}

/// Serializes a protobuf message field by field (https://protobuf.dev/programming-guides/encoding). Fields
/// with their default value may be left out.
class Protobuf {
 public:
  Protobuf& number(int field, std::int64_t value) {
    tag(field, 0);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Protobuf& number(int field, double value) {
    tag(field, 1);
    append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  Protobuf& number(int field, float value) {
    tag(field, 5);
    append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  /// Adds text, bytes or a serialized message.
  Protobuf& bytes(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Protobuf& message(int field, const Protobuf& value) { return bytes(field, value.bytes_); }

  const std::string& text() const { return bytes_; }

 private:
  void tag(int field, int wire_type) { varint(static_cast<std::uint64_t>(field << 3 | wire_type)); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_ = {};
};

/// CRC-32C (Castagnoli).
std::uint32_t crc32c(std::string_view bytes);

/// An event with one value: a Summary.Value message.
std::string summary_event(const EventTime& time, const Protobuf& value);

/// A record of TensorFlow's file format (tensorflow/core/lib/io/record_writer.h): the length in 8 bytes, its
/// masked CRC-32C, the bytes, their masked CRC-32C.
std::string framed_record(std::string_view bytes);

/// An event file of TensorBoard. Its name is `events.out.tfevents.<seconds>.<host>.<pid>.<n>`, as
/// TensorBoard's EventFileWriter names files; it begins with the version event.
class EventFile {
 public:
  /// Creates the file in `folder`. Throws Error{system}.
  explicit EventFile(const std::filesystem::path& folder);

  /// Throws Error{system}, see AppendedFile.
  void append(std::string_view event) { file_.append(framed_record(event)); }

 private:
  AppendedFile file_;
};

}  // namespace acc::detail
