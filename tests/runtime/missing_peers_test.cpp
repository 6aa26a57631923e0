// SPDX-License-Identifier: Apache-2.0
// Each case breaks its job, so it runs in a separate job, on three processes.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "acc/base/environment.hpp"
#include "acc/base/files.hpp"
#include "runtime/job.hpp"
#include "support/catch.hpp"

using namespace acc::test;  // NOLINT: the job and its net
using namespace std::chrono_literals;

TEST_CASE("missing_peers: all others name a process that dies in backward", "[.dies]") {
  auto model = job().prepare(Net());
  const at::Tensor output = model(at::ones({1, 2}, here()));
  if (rank() == 1) {
    output.register_hook([](const at::Tensor& gradient) {
      std::_Exit(0);
      return gradient;
    });
  }
  const acc::Error error = caught_error([&] { job().backward(output.sum()); });
  INFO(error.what());
  CHECK(error.kind() == acc::ErrorKind::system);
  CHECK(error.problems().front().where == "rank " + std::to_string(rank()) + ", backward");
  CHECK(error.problems().front().what.starts_with("rank 1 ended or was lost: "));
  const std::string written = acc::read_file(acc::Environment::of_process().get("TORCHELASTIC_ERROR_FILE"));
  CHECK(written.find(R"("consequence":true,"lost_ranks":[1])") != std::string::npos);
}

TEST_CASE("missing_peers: the launcher's store answers for a process that has ended", "[.ends]") {
  job().wait_for_everyone();
  if (rank() == 1) std::_Exit(0);
  const acc::WorkerEnv& worker = job().worker();
  c10d::TCPStoreOptions options;
  options.port = worker.master_port;
  c10d::PrefixStore store("default_pg", c10::make_intrusive<c10d::TCPStore>(worker.master_addr, options));
  CHECK(store.get_to_str("acc/peer_check/1") == "ended");
}

TEST_CASE("missing_peers: all name what one process alone has changed in its model", "[.changes]") {
  auto model = job().prepare(Net());
  job().backward(model(at::ones({1, 2}, here())).sum());
  if (rank() == 1) {
    model->to(at::kDouble);
    model->to(at::kFloat);
    model->second->weight.requires_grad_(false);
  }
  const acc::Error error = caught_error([&] { job().backward(model(at::ones({1, 2}, here())).sum()); });
  INFO(error.what());
  const std::string change = "comparison of parameters, since 'first.bias' was replaced";
  if (rank() == 1) {
    CHECK(error.problems().front().where == "rank 1, " + change);
  } else {
    CHECK(error.problems().front().what.find("rank 1 is in " + change) != std::string::npos);
  }
}

TEST_CASE("missing_peers: over Gloo, too, a process notices that it alone has changed its model, and ends",
          "[.changes_over_gloo]") {
  acc::Accelerator accelerator;  // whose timeout is longer than this test's
  auto model = accelerator.prepare(Net());
  accelerator.backward(model(at::ones({1, 2}, here())).sum());
  if (accelerator.process_index() == 1) model->second->weight.requires_grad_(false);
  accelerator.backward(model(at::ones({1, 2}, here())).sum());
}

TEST_CASE("missing_peers: all others name a process that hangs, and where it is", "[.hangs]") {
  // Set before the threads of the job are started: they inherit it.
  sigset_t wake_up;
  sigemptyset(&wake_up);
  sigaddset(&wake_up, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &wake_up, nullptr);

  acc::Accelerator accelerator({.process_group = {.timeout = 5s}});
  auto model = accelerator.prepare(Net());
  const at::Tensor processes = accelerator.gather(at::full({1}, ::getpid(), at::kLong));
  const at::Tensor output = model(at::ones({1, 2}, here()));
  if (accelerator.process_index() == 1) {
    int signal = 0;
    sigwait(&wake_up, &signal);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const acc::Error error = caught_error([&] { accelerator.backward(output.sum()); });
  const auto waited = std::chrono::steady_clock::now() - start;
  if (accelerator.process_index() == 0)
    ::kill(static_cast<pid_t>(processes[1].item<std::int64_t>()), SIGUSR1);
  INFO(error.what());
  // A process may notice that another one gave up before its own timeout expires.
  const std::string& problem = error.problems().front().what;
  const bool own_time_is_over = problem.starts_with("no answer from rank 1 within 5 s; ");
  CHECK((own_time_is_over || problem.starts_with("another process gave up waiting for rank 1; ")));
  CHECK(problem.ends_with("; rank 1 is after forward, 1 call behind"));
  CHECK(waited < 30s);
}
