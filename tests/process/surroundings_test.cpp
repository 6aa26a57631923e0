// SPDX-License-Identifier: Apache-2.0
// Jobs in surroundings that let them down: no memory, no disk. Skipped where such surroundings cannot be
// made.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "acc/base/text.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"
#include "support/launched.hpp"

using namespace acc;
using namespace acc::test;

namespace {

namespace fs = std::filesystem;

bool write_file(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

// Prints what was not as promised.
int verdict(bool good, const Ran& ran) {
  if (!good) std::cerr << "code " << ran.code << "\n" << ran.out << ran.err;
  return good ? 0 : 1;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// A group below our own one, whose processes may use so much memory together; removed with the object.
class MemoryGroup {
 public:
  explicit MemoryGroup(const std::string& limit) {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
      const std::vector<std::string> parts = split(line, ':');
      if (parts.size() < 3) continue;
      const bool v1 = parts[1] == "memory";
      if (!v1 && !parts[1].empty()) continue;
      const fs::path folder = fs::path(v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup") /
                              fs::path(parts[2]).relative_path() / ("acc-test-" + std::to_string(::getpid()));
      std::error_code error;
      if (!fs::create_directory(folder, error)) continue;
      folder_ = folder;
      if (write_file(folder / (v1 ? "memory.limit_in_bytes" : "memory.max"), limit)) return;
      fs::remove(folder, error);
      folder_.clear();
    }
  }
  ~MemoryGroup() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove(folder_, ignored);
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  bool enter() const { return !folder_.empty() && write_file(folder_ / "cgroup.procs", "0"); }

 private:
  fs::path folder_ = {};
};

// A file system of this size at `folder`, seen by this process and its children alone.
bool mount_small_disk(const fs::path& folder, const std::string& size) {
  const std::string ids = std::to_string(::getuid());
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    write_file("/proc/self/uid_map", ids + " " + ids + " 1");
  }
  ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  return ::mount("none", folder.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
}

}  // namespace

TEST_CASE("surroundings: a worker that the kernel kills for memory is told as such", "[process]") {
  const MemoryGroup group("268435456");
  const int result = in_child([&] {
    if (!group.enter()) return kSkipped;
    const Ran ran = launch_stub({"workers=2"}, {"rank", "1", "eat", "500", "pause"});
    return verdict(ran.code == 137 && count(ran.err, "rank 1 (") == 1 &&
                       count(ran.err, "was killed by the kernel for memory: signal 9 (SIGKILL)") == 1,
                   ran);
  });
  if (result == kSkipped) {
    WARN("no memory group can be made here: not tested");
    return;
  }
  CHECK(result == 0);
}

TEST_CASE("surroundings: a full disk costs the logs and one line, not the job", "[process]") {
  const TemporaryFolder folder;
  const int result = in_child([&] {
    if (!mount_small_disk(folder.path(), "64k")) return kSkipped;
    const Ran ran = launch_stub({"workers=2", "tee=3", "log_dir=" + folder.path().string()},
                                {"flood", "300000", "100", "errline", "the end", "rank", "1", "exit", "5"});
    const std::vector<std::string> lines = split(ran.out, '\n');
    const auto whole = std::ranges::count_if(lines, [](const std::string& line) {
      return line.starts_with("[default1]:<1:") && line.ends_with(">");
    });
    return verdict(
        ran.code == 5 && whole >= 300'000 / 103 &&
            count(ran.err, "a log file cannot be written any more: No space left on device") == 1 &&
            count(ran.err, "  | the end\n") == 1,
        ran);
  });
  if (result == kSkipped) {
    WARN("no file system can be mounted here: not tested");
    return;
  }
  CHECK(result == 0);
}
