// SPDX-License-Identifier: Apache-2.0
// What scripts/bench/launch starts under each launcher: a worker that notes when something happened to it,
// and the least launcher there can be. A note is a file FOLDER/<name>.<rank> that holds CLOCK_MONOTONIC in
// nanoseconds.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void note(const std::string& folder, const std::string& name, long long value) {
  const std::string path = folder + "/" + name + "." + variable("RANK");
  const std::string unfinished = path + ".part";
  std::FILE* file = std::fopen(unfinished.c_str(), "w");
  if (file == nullptr) std::exit(3);
  std::fprintf(file, "%lld\n", value);
  std::fclose(file);
  std::rename(unfinished.c_str(), path.c_str());
}

void note_now(const std::string& folder, const std::string& name) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  note(folder, name, now.tv_sec * 1'000'000'000LL + now.tv_nsec);
}

[[noreturn]] void hold() {
  while (true) pause();
}

// Rank 0 goes on when rank 1 is here: a launcher that is still starting workers would be measured, too.
void meet_other(const std::string& folder, bool first) {
  const std::string fifo = folder + "/ready";
  mkfifo(fifo.c_str(), 0600);  // the other one may have made it
  if (open(fifo.c_str(), first ? O_RDONLY : O_WRONLY) < 0) std::exit(3);
}

// Lines of 100 bytes, `mebibytes` of them.
void flood(int mebibytes) {
  const std::string line =
      std::string(99, static_cast<char>('a' + std::atoi(variable("RANK").c_str()) % 26)) + "\n";
  std::string block;
  while (block.size() < 64'000) block += line;
  for (long long left = mebibytes * 1'048'576LL; left > 0;) {
    const ssize_t n = write(STDOUT_FILENO, block.data(), block.size());
    if (n <= 0) std::exit(3);
    left -= n;
  }
}

int spawn(int count, char** command) {
  std::vector<pid_t> children(static_cast<std::size_t>(count));
  for (pid_t& child : children) {
    if (posix_spawn(&child, command[0], nullptr, nullptr, command, environ) != 0) return 3;
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  return 0;
}

// Prints the KiB that a command takes at most. Not from Python: a child's figure begins with its parent's.
int peak_memory(char** command) {
  pid_t child = 0;
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (posix_spawn(&child, command[0], &quiet, nullptr, command, environ) != 0) return 3;
  int status = 0;
  rusage usage = {};
  if (wait4(child, &status, 0, &usage) != child || status != 0) return 3;
  std::printf("%ld\n", usage.ru_maxrss);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string what = argv[1];
  if (what == "spawn") return spawn(std::atoi(argv[2]), argv + 3);
  if (what == "peak") return peak_memory(argv + 2);
  const std::string folder = argv[2];
  const bool first = variable("RANK") == "0";
  if (what == "hold") {
    note(folder, "port", std::atoll(variable("MASTER_PORT").c_str()));
    note(folder, "pid", getpid());
    hold();
  }
  if (what == "crash") {
    note(folder, "pid", getpid());
    meet_other(folder, first);
    if (!first) hold();
    note_now(folder, "crash");
    _exit(7);
  }
  if (what == "crash_once") {
    if (variable("TORCHELASTIC_RESTART_COUNT") != "0") {
      note_now(folder, "successor");
      return 0;
    }
    note(folder, "pid", getpid());
    meet_other(folder, first);
    if (!first) hold();
    note_now(folder, "crash");
    _exit(7);
  }
  if (what == "end") {
    note_now(folder, "end");
    return 0;
  }
  if (what == "flood") {
    note_now(folder, "began");
    flood(std::atoi(argv[3]));
    return 0;
  }
  if (what == "say") {
    note_now(folder, "said");
    if (write(STDOUT_FILENO, "x\n", 2) != 2) return 3;
    hold();
  }
  return 2;
}
