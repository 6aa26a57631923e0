// SPDX-License-Identifier: Apache-2.0
// Saves a state in the memory of a job, as libacc does: acc-test-save-state FOLDER NUMBER [KIB]. It has KIB
// KiB of weights, and belongs to FOLDER on a disk.
#include <cstdint>
#include <string>

#include "acc/base/environment.hpp"
#include "acc/base/files.hpp"
#include "acc/formats/checksums.hpp"
#include "acc/formats/saved_states.hpp"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string number = argv[2];
  const acc::SavedStates states =
      acc::states_of_training(acc::Environment::of_process().get("ACC_MEMORY_FOLDER"), {});
  const std::filesystem::path half = states.folder() / ".half";
  const std::size_t bytes = argc > 3 ? std::size_t{std::stoul(argv[3])} << 10U : 0;
  acc::replace_file(half / "model.safetensors", "weights " + number + std::string(bytes, 'w'));
  acc::write_snapshot_record(half, {.id = number, .disk = argv[1]});
  acc::write_checksums(half, {});
  std::filesystem::rename(half, states.snapshot(std::stoll(number)));
  states.keep_newest(2);
}
