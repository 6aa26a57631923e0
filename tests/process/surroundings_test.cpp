// SPDX-License-Identifier: Apache-2.0
// Jobs without memory, disk space or reader. Skipped where such an environment cannot be created.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "acc/base/files.hpp"
#include "acc/base/text.hpp"
#include "acc/control/job_file.hpp"
#include "support/catch.hpp"
#include "support/in_child.hpp"
#include "support/launched.hpp"
#include "support/skip.hpp"

namespace surroundings_test {

using namespace acc;
using namespace acc::launcher;
using namespace acc::test;

namespace {

namespace fs = std::filesystem;

bool write_file(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

// Prints a failed check.
int verdict(bool good, const Ran& ran) {
  if (!good) std::cerr << "code " << ran.code << "\n" << ran.out << ran.err;
  return good ? 0 : 1;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t occurrences = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++occurrences;
  return occurrences;
}

// A cgroup with a memory limit; removed with the object. It is made below the first group, from that of this
// process upwards, which limits its children: in version 2 no group does that has processes of its own,
// except the root.
class MemoryGroup {
 public:
  explicit MemoryGroup(const std::string& limit) {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
      const std::vector<std::string> parts = split(line, ':');
      if (parts.size() < 3) continue;
      const bool v1 = parts[1] == "memory";
      if (!v1 && !parts[1].empty()) continue;
      const fs::path root = v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
      const std::string file = v1 ? "memory.limit_in_bytes" : "memory.max";
      for (fs::path group = fs::path(parts[2]).relative_path();; group = group.parent_path()) {
        folder_ = root / group / ("acc-test-" + std::to_string(::getpid()));
        std::error_code error;
        if (fs::create_directory(folder_, error)) {
          if (write_file(folder_ / file, limit)) return;
          fs::remove(folder_, error);
        }
        if (group.empty()) break;
      }
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

// Mounts a file system of this size at `folder`, private to this process and its children.
bool mount_small_disk(const fs::path& folder, const std::string& size) {
  const std::string ids = std::to_string(::getuid());
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    write_file("/proc/self/uid_map", ids + " " + ids + " 1");
  }
  ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  return ::mount("none", folder.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
}

// A shell runs the job with its standard output there.
Streams3 with_output(const std::string& redirection) {
  return {.script = "{ \"$@\"; echo code $? >&2; } " + redirection};
}

// Fills a file system until it is removed.
void fill(const fs::path& file) {
  std::ofstream out(file, std::ios::binary);
  const std::string page(4096, 'x');
  while (out.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
  }
}

}  // namespace

TEST_CASE("surroundings: an OOM kill of a worker is reported as such", "[process]") {
  // The kernel kills the largest, which is to be the worker: sanitizers make an agent of 200 MB.
  const MemoryGroup group("536870912");
  const int result = in_child([&] {
    if (!group.enter()) return kSkipped;
    const Ran ran = launch_stub({"workers=2"}, {"rank", "1", "eat", "1000", "pause"});
    return verdict(
        ran.code == 137 && count(ran.err, "rank 1 (") == 1 &&
            count(ran.err, "was killed by the kernel for memory (OOM killer): signal 9 (SIGKILL)") == 1,
        ran);
  });
  if (result == kSkipped) {
    skip("no memory cgroup can be made");
    return;
  }
  CHECK(result == 0);
}

TEST_CASE("surroundings: a job that acc ps could not find says so once", "[process]") {
  const int result = in_child([] {
    if (!mount_small_disk("/dev/shm", "1m")) return kSkipped;
    ::unsetenv("XDG_RUNTIME_DIR");
    ::unsetenv("TMPDIR");
    for (const fs::path& folder : runtime_folders(Environment(), ::geteuid())) {
      ::mkdir(folder.c_str(), 0700);
      // Others may enter it.
      if (fs::exists(folder) && ::mount("none", folder.c_str(), "tmpfs", 0, "mode=777") != 0) return kSkipped;
    }
    const Ran ran = launch_stub({"workers=2", "restarts=1"}, {"attempt", "1", "exit", "0", "exit", "5"});
    const std::string warning = "acc: warning: acc ps and acc stop cannot find this job: ";
    return verdict(ran.code == 0 && count(ran.err, warning) == 1 && has(ran.err, "is open to other users"),
                   ran);
  });
  if (result == kSkipped) {
    skip("nothing can be mounted");
    return;
  }
  CHECK(result == 0);
}

TEST_CASE("surroundings: a full disk loses logs, with one warning, but not the job", "[process]") {
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
        ran.code == 5 && whole >= 300'000 / 103 && count(ran.err, "a log file cannot be written: ") == 1 &&
            count(ran.err, " bytes of output are lost: ") == 1 && count(ran.err, "  | the end\n") == 1,
        ran);
  });
  if (result == kSkipped) {
    skip("no file system can be mounted");
    return;
  }
  CHECK(result == 0);
}

TEST_CASE("surroundings: lost output is reported, and is not a success", "[process]") {
  const Ran ran = launch_stub({"workers=2"}, {"line", "lost", "exit", "0"}, with_output("> /dev/full"));
  CHECK(ran.err.starts_with(
      "acc: warning: standard output cannot be written: No space left on device; acc keeps trying\n"));
  CHECK(count(ran.err, "\nacc: warning: 10 bytes of output are lost: ") == 1);
  CHECK(ran.err.ends_with("; the exit code is 1 for that\ncode 1\n"));
  CHECK(count(ran.err, "\n") == 3);
  CHECK(launch_stub({"workers=2"}, {"exit", "0"}, with_output("> /dev/full")).err == "code 0\n");
  CHECK(has(launch_stub({"workers=2"}, {"line", "lost", "exit", "7"}, with_output("> /dev/full")).err,
            "; the exit code is") == false);
}

TEST_CASE("surroundings: nothing is missing once a full disk has room again", "[process]") {
  const bool tee = GENERATE(false, true);
  const TemporaryFolder folder;
  const TemporaryFolder others;
  const int result = in_child([&] {
    if (!mount_small_disk(folder.path(), "64k")) return kSkipped;
    const fs::path disk = folder.path();
    ReportFifo reports;
    const ReportFifo gate;
    std::vector<std::string> options = {"workers=2"};
    if (tee) options.insert(options.end(), {"tee=1", "log_dir=" + disk.string()});
    fill(disk / "filler");
    const fs::path out = (tee ? others.path() : disk) / "out";
    Launched job(
        stub(options, {"line", "one", "tell", reports.path(), "up", "await", gate.path(), "line", "two"}),
        with_output("> " + out.string()));
    reports.next_processes(2);
    job.wait_for_error("acc keeps trying");
    fs::remove(disk / "filler");
    std::ofstream(gate.path()) << "xx" << std::flush;
    job.wait();
    std::string written = tee ? "" : read_file(out);
    for (const auto& entry : fs::recursive_directory_iterator(disk)) {
      if (entry.path().filename() == "stdout.log") written += read_file(entry.path());
    }
    return verdict(count(written, "one\n") == 2 && count(written, "two\n") == 2 && has(job.err(), "code 0\n"),
                   {0, written, job.err()});
  });
  if (result == kSkipped) {
    skip("no file system can be mounted");
    return;
  }
  CHECK(result == 0);
}

TEST_CASE("surroundings: when the reader of its output ends, a job ends as a pipeline does", "[process]") {
  const std::string workers = GENERATE("1", "2");
  const Ran ran =
      launch_stub({"workers=" + workers}, {"flood", "10000000000", "100"}, with_output("| head -n 1"));
  CHECK(count(ran.out, "\n") == 1);
  CHECK(ran.err.ends_with("code 141\n"));
  if (workers == "2") {
    CHECK(ran.err.starts_with("acc: the reader of its output is gone, stopping "));
    CHECK(count(ran.err, "\n") == 2);
  }
}

TEST_CASE("surroundings: a lost reader does not matter if files get everything", "[process]") {
  const TemporaryFolder folder;
  const Ran ran = launch_stub({"workers=2", "tee=3", "log_dir=" + folder.path().string()},
                              {"flood", "1000000", "99"}, with_output("| head -n 1"));
  CHECK(ran.err.starts_with("acc: warning: the reader of standard output is gone; "));
  CHECK(ran.err.ends_with("\ncode 0\n"));
  CHECK(count(ran.err, "\n") == 2);
  std::uintmax_t written = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (entry.path().filename() == "stdout.log") written += entry.file_size();
  }
  CHECK(written >= 2'000'000);
}

TEST_CASE("surroundings: a limit of the size of files does not matter to a job that writes none",
          "[process]") {
#if defined(__SANITIZE_THREAD__)
  SUCCEED("ThreadSanitizer writes a file at the start of each program");
  return;
#endif
  const Ran ran =
      launch_stub({"workers=2"}, {"exit", "5"}, {.script = "ulimit -f 0; \"$@\"; echo code $? >&2"});
  CHECK(ran.err.ends_with("code 5\n"));
}

TEST_CASE("surroundings: a job whose agent cannot be started leaves nothing", "[process]") {
  constexpr uid_t kNobody = 65534;
  const TemporaryFolder folder;
  const int result = in_child([&] {
    // The limit is none for root.
    if (::geteuid() == 0 &&
        (::chown(folder.path().c_str(), kNobody, kNobody) != 0 || ::setgid(kNobody) != 0 ||
         ::setuid(kNobody) != 0 || ::access(ACC_TEST_PROGRAMS, X_OK) != 0))
      return kSkipped;
    const std::string where = folder.path().string();
    const Ran ran = launch_stub({"workers=2", "watch=1"}, {"exit", "0"},
                                {.script = "export TMPDIR=" + where + " XDG_RUNTIME_DIR=" + where +
                                           "; ulimit -p 1 2>/dev/null || ulimit -u 1; exec \"$@\""});
    const bool is_empty = fs::is_empty(folder.path() / "acc") &&
                          std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1;
    return verdict(ran.code == 1 && is_empty && has(ran.err, "cannot start the agent: "), ran);
  });
  if (result == kSkipped) {
    skip("another user cannot start the program");
    return;
  }
  CHECK(result == 0);
}

TEST_CASE("surroundings: a limit of open files is named, whatever met it first", "[process]") {
  const auto with_files = [](int files) {
    const Ran ran = launch_stub({"workers=2"}, {"exit", "0"},
                                {.script = "ulimit -n " + std::to_string(files) + "; exec \"$@\""});
    return ran.code == 0 ? std::string() : ran.err;
  };
  int failed = 0;
  for (const int files : {9, 10, 12, 14, 16, 18, 20}) {
    const std::string text = with_files(files);
    if (text.empty()) continue;
    ++failed;
    INFO(files << ": " << text);
    CHECK(text.ends_with("(raise the limit of open files: ulimit -n)\n"));
    CHECK(count(text, "\n") == 1);
  }
  CHECK(failed >= 5);
}

}  // namespace surroundings_test
