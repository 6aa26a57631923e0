// SPDX-License-Identifier: Apache-2.0
// A worker that carries out the actions in its arguments, one after the other; see `actions` below.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using Words = std::vector<std::string>;

int rank() {
  const char* text = std::getenv("RANK");
  return text == nullptr ? 0 : std::atoi(text);
}

void put(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n <= 0) _exit(99);
    done += static_cast<std::size_t>(n);
  }
}

// Writes one line to a FIFO, atomically: shorter than PIPE_BUF.
void tell(const std::string& fifo, const std::string& text) {
  const int fd = ::open(fifo.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) _exit(98);
  put(fd, text + "\n");
  ::close(fd);
}

std::string told_to = {};
int answer = 0;

void on_signal(int signal) {
  if (answer >= 0) _exit(answer);
  tell(told_to, "signal " + std::to_string(signal));
}

// Forks; the parent continues when the child has reported.
bool in_child() {
  int ready[2] = {-1, -1};
  if (::pipe(ready) != 0) _exit(94);
  if (::fork() == 0) {
    ::close(ready[0]);
    return true;
  }
  ::close(ready[1]);
  char byte = 0;
  if (::read(ready[0], &byte, 1) < 0) _exit(93);
  ::close(ready[0]);
  return false;
}

[[noreturn]] void live_on(const std::string& fifo, const std::string& name) {
  tell(fifo, name + " " + std::to_string(::getpid()));
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  for (;;) ::pause();
}

// A daemon: a process in its own session whose parent has ended.
void daemon(const std::string& fifo, bool deaf) {
  if (!in_child()) return;
  ::setsid();
  if (::fork() != 0) _exit(0);
  if (deaf) ::signal(SIGTERM, SIG_IGN);
  live_on(fifo, "daemon");
}

// A child in the worker's process group.
void child(const std::string& fifo) {
  if (in_child()) live_on(fifo, "child");
}

void flood(std::size_t bytes, std::size_t width) {
  const std::string head = "<" + std::to_string(rank()) + ":";
  std::string block;
  std::size_t number = 0;
  for (std::size_t written = 0; written < bytes;) {
    block.clear();
    while (block.size() < 60'000 && written + block.size() < bytes) {
      std::string line = head + std::to_string(number++) + ":";
      line.resize(width, static_cast<char>('a' + rank()));
      block += line + ">\n";
    }
    put(1, block);
    written += block.size();
  }
}

void show_descriptors() {
  std::vector<int> open;
  DIR* folder = ::opendir("/proc/self/fd");
  for (dirent* entry = ::readdir(folder); entry != nullptr; entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != ::dirfd(folder)) open.push_back(fd);
  }
  std::sort(open.begin(), open.end());
  std::string text = "fds";
  for (const int fd : open) text += " " + std::to_string(fd);
  put(1, text + "\n");
}

void show_process() {
  sigset_t blocked = {};
  ::sigprocmask(SIG_SETMASK, nullptr, &blocked);
  int odd = 0;
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action = {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_DFL || ::sigismember(&blocked, signal) == 1) ++odd;
  }
  int death = 0;
  ::prctl(PR_GET_PDEATHSIG, &death);
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const pid_t pid = ::getpid();
  put(1, "leader " + std::to_string(::getsid(0) == pid && ::getpgrp() == pid) + " odd " +
             std::to_string(odd) + " death " + std::to_string(death) + " files " +
             std::to_string(files.rlim_cur) + "\n");
}

// `cpus 0-3`, and the preferred NUMA nodes.
void show_placement() {
  std::string cpus;
  std::FILE* status = std::fopen("/proc/self/status", "r");
  char line[4096];
  while (status != nullptr && std::fgets(line, sizeof line, status) != nullptr) {
    if (std::strncmp(line, "Cpus_allowed_list:\t", 19) == 0) cpus = line + 19;
  }
  int policy = -1;
  unsigned long nodes[16] = {};
  const long got = ::syscall(SYS_get_mempolicy, &policy, nodes, 1024UL, nullptr, 0UL);
  put(1, "cpus " + cpus.substr(0, cpus.find('\n')) + " policy " + std::to_string(got < 0 ? -1 : policy) +
             " nodes " + std::to_string(nodes[0]) + "\n");
}

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "(none)" : value;
}

void connect_to_store() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(variable("MASTER_PORT").c_str())));
  ::inet_pton(AF_INET, variable("MASTER_ADDR").c_str(), &address.sin_addr);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) _exit(97);
}

struct Action {
  std::size_t words;
  std::function<void(const Words&)> act;
};

// `rank R` and `attempt N` skip the next action in other ranks and attempts.
bool skip_next = false;

const std::map<std::string, Action> actions = {
    {"exit", {1, [](const Words& w) { _exit(std::stoi(w[0])); }}},
    {"raise", {1, [](const Words& w) { ::raise(std::stoi(w[0])); }}},
    {"pause",
     {0,
      [](const Words&) {
        for (;;) ::pause();
      }}},
    {"nap", {1, [](const Words& w) { ::usleep(static_cast<useconds_t>(std::stoi(w[0])) * 1000); }}},
    {"ignore", {1, [](const Words& w) { ::signal(std::stoi(w[0]), SIG_IGN); }}},
    {"rank", {1, [](const Words& w) { skip_next = rank() != std::stoi(w[0]); }}},
    {"attempt", {1, [](const Words& w) { skip_next = variable("TORCHELASTIC_RESTART_COUNT") != w[0]; }}},
    {"out", {1, [](const Words& w) { put(1, w[0]); }}},
    {"err", {1, [](const Words& w) { put(2, w[0]); }}},
    {"line", {1, [](const Words& w) { put(1, w[0] + "\n"); }}},
    {"errline", {1, [](const Words& w) { put(2, w[0] + "\n"); }}},
    {"flood", {2, [](const Words& w) { flood(std::stoul(w[0]), std::stoul(w[1])); }}},
    {"isatty",
     {0,
      [](const Words&) {
        put(1, "tty " + std::to_string(::isatty(1)) + std::to_string(::isatty(2)) + "\n");
      }}},
    {"foreground",
     {0,
      [](const Words&) { put(1, ::tcgetpgrp(0) == ::getpgrp() ? "in foreground\n" : "in background\n"); }}},
    // Waits until this process is in the foreground.
    {"await-foreground",
     {0,
      [](const Words&) {
        while (::tcgetpgrp(0) != ::getpgrp()) ::sched_yield();
      }}},
    {"echo-off",
     {0,
      [](const Words&) {
        termios mode = {};
        ::tcgetattr(0, &mode);
        mode.c_lflag &= ~static_cast<tcflag_t>(ECHO);
        ::tcsetattr(0, TCSANOW, &mode);
      }}},
    {"echo",
     {0,
      [](const Words&) {
        termios mode = {};
        ::tcgetattr(0, &mode);
        put(1, (mode.c_lflag & ECHO) != 0 ? "echo on\n" : "echo off\n");
      }}},
    {"read-line",
     {0,
      [](const Words&) {
        std::string line;
        for (char byte = 0; byte != '\n' && ::read(0, &byte, 1) == 1;) line += byte;
        put(1, "read " + line);
      }}},
    {"env", {1, [](const Words& w) { put(1, w[0] + "=" + variable(w[0]) + "\n"); }}},
    {"eat",
     {1,
      [](const Words& w) {
        for (int mib = std::stoi(w[0]); mib > 0; --mib) std::memset(new char[1U << 20U], 1, 1U << 20U);
      }}},
    {"fds", {0, [](const Words&) { show_descriptors(); }}},
    {"process", {0, [](const Words&) { show_process(); }}},
    {"placement", {0, [](const Words&) { show_placement(); }}},
    {"store", {0, [](const Words&) { connect_to_store(); }}},
    {"cat",
     {0,
      [](const Words&) {
        char byte = 0;
        while (::read(0, &byte, 1) == 1) put(1, std::string(1, byte));
      }}},
    {"tell", {2, [](const Words& w) { tell(w[0], w[1] + " " + std::to_string(::getpid())); }}},
    {"await",
     {1,
      [](const Words& w) {
        char byte = 0;
        if (::read(::open(w[0].c_str(), O_RDONLY), &byte, 1) < 0) _exit(96);
      }}},
    {"daemon", {1, [](const Words& w) { daemon(w[0], false); }}},
    {"deaf-daemon", {1, [](const Words& w) { daemon(w[0], true); }}},
    {"child", {1, [](const Words& w) { child(w[0]); }}},
    {"on",
     {2,
      [](const Words& w) {
        answer = std::stoi(w[1]);
        ::signal(std::stoi(w[0]), on_signal);
      }}},
    {"on-tell",
     {2,
      [](const Words& w) {
        answer = -1;
        told_to = w[1];
        ::signal(std::stoi(w[0]), on_signal);
      }}},
    {"error-file",
     {1,
      [](const Words& w) {
        std::FILE* file = std::fopen(variable("TORCHELASTIC_ERROR_FILE").c_str(), "w");
        if (file == nullptr) _exit(95);
        std::fputs(w[0].c_str(), file);
        std::fclose(file);
      }}},
};

}  // namespace

int main(int argc, char** argv) {
  for (int next = 1; next < argc;) {
    const auto action = actions.find(argv[next]);
    if (action == actions.end() || next + static_cast<int>(action->second.words) >= argc) return 100;
    const int end = next + 1 + static_cast<int>(action->second.words);
    const bool skip = std::exchange(skip_next, false);
    if (!skip) action->second.act(Words(argv + next + 1, argv + end));
    next = end;
  }
  return 0;
}
