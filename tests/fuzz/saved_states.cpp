// SPDX-License-Identifier: Apache-2.0
// The folder of a state in memory: what it says of itself, and its list of checksums, which the first byte
// makes right or leaves as it is.
#include "acc/formats/saved_states.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "acc/formats/checksums.hpp"
#include "fuzz/promise.hpp"

namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fs::path kFolder = "/dev/shm/acc-fuzz-state-" + std::to_string(::getpid());
  std::string_view text = fuzz::text_of(data, size);
  fuzz::Choices choices(text);
  const bool has_checksum = choices.below(4) != 0;
  fs::create_directory(kFolder);
  write(kFolder / "snapshot.json", text);
  const auto record = fuzz::value_or_error([&] { return acc::read_snapshot_record(kFolder); });
  if (record) {
    acc::write_snapshot_record(kFolder, *record);
    fuzz::require(acc::read_snapshot_record(kFolder) == *record, "a record is written as read");
  }
  const fs::path list = kFolder / "checksums_0.json";
  const std::string_view line = text.substr(0, text.find('\n'));
  write(list, line);
  write(list, has_checksum ? std::string(line) + "\n" + acc::checksum_of(list) + "\n" : std::string(text));
  const std::string damage = acc::damage_in(kFolder);
  fuzz::require(damage == acc::printable(damage), "damage is told in words that move no cursor", damage);
  acc::write_checksums(kFolder, {});
  fuzz::require(acc::damage_in(kFolder).empty(), "what was written is whole");
  fs::remove_all(kFolder);
  return 0;
}
