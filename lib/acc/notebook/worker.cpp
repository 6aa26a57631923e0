// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/worker.hpp"

#include <ATen/Parallel.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <thread>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/runtime/comm/record.hpp"

namespace acc::detail {
namespace {

// Stands before each result, also an empty one.
constexpr char kReturned = 'R';

// OpenMP reads the variable when it is loaded, which was in the calling program.
void set_threads(const Environment& environment) {
  const auto threads = parse_python_integer(environment.get("OMP_NUM_THREADS"));
  if (threads && *threads > 0) at::set_num_threads(static_cast<int>(*threads));
}

int call(const WorkerFunction& function, const SharedText& result) {
  try {
    set_threads(Environment::of_process());
    result.write(kReturned + function());
    return 0;
  } catch (const Error& error) {
    write_error_file(error.what());
    return exit_code(error.kind());
  } catch (const std::exception& error) {
    write_error_file(describe_exception(error));
  } catch (...) {
    write_error_file("an exception that is not a std::exception");
  }
  return 1;
}

}  // namespace

int run_worker(const WorkerFunction& function, const SharedText& result) {
  // As Python: a lost process is an error of the connection, not the end of this one.
  ::signal(SIGPIPE, SIG_IGN);
  record_uncaught_exceptions();
  // Whole lines at once, also into a pipe; the caller's buffer was flushed before the fork.
  static std::array<char, std::size_t{1} << 16U> lines;
  ::setvbuf(stdout, lines.data(), _IOLBF, lines.size());
  int code = 1;
  // Not in this thread: if it is the caller's that forked, libgomp takes the threads that this one had for
  // alive, and waits for them for ever.
  std::thread([&] { code = call(function, result); }).join();
  flush_standard_streams();
  return code;
}

void flush_standard_streams() {
  for (std::ostream* stream : {&std::cout, &std::cerr, &std::clog}) stream->flush();
  for (std::wostream* stream : {&std::wcout, &std::wcerr, &std::wclog}) stream->flush();
  std::fflush(nullptr);
}

std::optional<std::string> result_in(const SharedText& result) {
  std::string text = result.read();
  if (!text.starts_with(kReturned)) return std::nullopt;
  text.erase(0, 1);
  return text;
}

}  // namespace acc::detail
