// SPDX-License-Identifier: Apache-2.0
#include "plain_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "acc/base/environment.hpp"
#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/machine.hpp"
#include "acc/base/running_clock.hpp"
#include "acc/base/subprocess/command.hpp"
#include "acc/base/text.hpp"
#include "acc/base/worker_env.hpp"
#include "acc/plan/program.hpp"
#include "acc/store/client.hpp"

namespace acc::launcher {
namespace {

constexpr std::string_view kNotInstalled =
    "libacc (acc-selftest is not installed): training in C++, loaders, checkpoints, the speed of links and "
    "ranks";

// A DDP training whose result must be that of one process with all the data. No `$local_rank` may be in it:
// acc would expand that.
constexpr std::string_view kTraining = R"python(
import copy, datetime, json, os, sys, time, torch
import torch.distributed as dist

expected, limit, as_json, not_tested, report_file = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "json", *sys.argv[4:6]
rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
gpu = torch.cuda.is_available() and os.environ.get("ACCELERATE_USE_CPU", "").lower() != "true"
device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if gpu else torch.device("cpu")
backend = "nccl" if gpu else "gloo"
checks = []

# torch 2.11 sometimes aborts while the interpreter ends.
def leave(code):
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

def check(name, function):
    began = time.monotonic()
    try:
        function()
    except Exception as error:
        print(f"acc test: rank {rank}: {name}: {error}", file=sys.stderr)
        leave(1)
    checks.append({"name": name, "passed": True, "seconds": time.monotonic() - began, "failure": ""})

# PYTHONOPTIMIZE removes assertions.
def require(good, message):
    if not good:
        raise RuntimeError(message)

def meet():
    global store
    require(world == expected, f"{world} processes instead of {expected}")
    timeout = datetime.timedelta(seconds=limit)
    if "RANK" in os.environ:
        store = next(dist.rendezvous("env://", timeout=timeout))[0]
    else:
        store = dist.HashStore()
    dist.init_process_group(backend, store=dist.PrefixStore("group", store), rank=rank, world_size=world, timeout=timeout)

def exchange():
    store.set(f"acc test {rank}", str(rank))
    seen = [store.get(f"acc test {other}").decode() for other in range(world)]
    require(seen == [str(other) for other in range(world)], f"the store has {seen}")

def collectives():
    total = torch.tensor([rank + 1.0], device=device)
    dist.all_reduce(total)
    require(total.item() == world * (world + 1) / 2, f"all_reduce of the ranks gives {total.item()}")
    parts = [torch.zeros(1, device=device) for _ in range(world)]
    dist.all_gather(parts, torch.tensor([float(rank)], device=device))
    require([part.item() for part in parts] == list(range(world)), f"all_gather gives {parts}")

def training():
    torch.manual_seed(0)
    inputs = torch.randn(4 * world, 8, device=device)
    targets = inputs.sum(1, keepdim=True)
    alone = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(device)
    together = torch.nn.parallel.DistributedDataParallel(copy.deepcopy(alone), device_ids=[device.index] if gpu else None)
    own = slice(4 * rank, 4 * rank + 4)
    for model, x, y in ((alone, inputs, targets), (together, inputs[own], targets[own])):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for _ in range(5):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    # The greatest of tensors is NaN if one is; max() of numbers may overlook it.
    off = torch.stack([(a - b).abs().max() for a, b in zip(alone.parameters(), together.parameters())]).max().item()
    require(off < 1e-4, f"the weights differ by {off} from those of one process")

check("rendezvous", meet)
check("store", exchange)
check("collectives", collectives)
check("training", training)
# The times are those of the slowest process.
seconds = torch.tensor([one["seconds"] for one in checks], dtype=torch.float64, device=device)
dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
for one, slowest in zip(checks, seconds.tolist()):
    one["seconds"] = slowest
report = json.dumps({"schema": 1, "passed": True, "error": "", "num_processes": world, "device": str(device.type),
                     "torch": torch.__version__, "checks": checks, "not_tested": not_tested})
if rank == 0 and report_file:
    with open(report_file, "w") as file:
        file.write(report)
if rank == 0 and as_json:
    print(report)
elif rank == 0:
    print(f"acc test: {world} process{'es' if world > 1 else ''}, {device.type} ({backend}), torch {torch.__version__}")
    for one in checks:
        print(f"{one['name']:<24} ok ({one['seconds'] * 1e3:.1f} ms)")
    print(f"not tested: {not_tested}")
dist.destroy_process_group()
leave(0)
)python";

bool has_torch(const std::string& python, const Environment& environment) {
  const auto output = run_command(
      {python, "-c", "import importlib.util; print('yes' if importlib.util.find_spec('torch') else 'no')"},
      environment, {.time = std::chrono::seconds(30)});
  return output && !output->timed_out && trim(output->text) == "yes";
}

[[noreturn]] void fail_step(const WorkerEnv& worker, const std::string& step, const std::string& reason) {
  throw Error(
      {.kind = ErrorKind::system, .what = reason, .where = fmt::format("rank {}: {}", worker.rank, step)});
}

// The `values` of all processes by rank, each of which sets a key and waits for those of the others. Nothing
// if one does not come in time, or the store is lost.
std::optional<std::vector<std::string>> exchange(boost::asio::io_context& loop, StoreClient& store,
                                                 const WorkerEnv& worker, std::string_view name,
                                                 const std::string& value, std::chrono::milliseconds limit) {
  const auto key = [&](int rank) { return fmt::format("/acc test {} {}", name, rank); };
  std::vector<std::string> keys;
  for (int rank = 0; rank < worker.world_size; ++rank) keys.push_back(key(rank));
  std::optional<std::vector<std::string>> values;
  store.set(key(worker.rank), value);
  store.get_when_present(keys, limit, [&](StoreOutcome outcome, std::vector<std::string> all) {
    if (outcome == StoreOutcome::done) values = std::move(all);
    loop.stop();
  });
  loop.restart();
  loop.run_for(2 * limit);
  return values;
}

// Returns the seconds until the slowest process has met the others.
double meet_in_store(const WorkerEnv& worker, std::chrono::milliseconds limit) {
  const auto began = RunningClock::now();
  boost::asio::io_context loop;
  StoreClient store(loop, limit);
  std::optional<Error> refused;
  store.connect(
      {.host = worker.master_addr, .port = worker.master_port}, RunningClock::now() + limit,
      [](const std::string& /*reason*/) {},
      [&](std::optional<Error> error) {
        refused = std::move(error);
        if (refused) loop.stop();
      });
  const bool met = exchange(loop, store, worker, "host", host_name(), limit).has_value();
  if (refused) throw Error(*refused);
  if (!met) fail_step(worker, "store", "not all processes came to the store in time");
  const std::chrono::duration<double> took = RunningClock::now() - began;
  const auto all = exchange(loop, store, worker, "seconds", fmt::to_string(took.count()), limit);
  if (!all) fail_step(worker, "store", "not all processes told their time in time");
  double slowest = 0;
  for (const std::string& seconds : *all) slowest = std::max(slowest, parse_number(seconds).value_or(0));
  return slowest;
}

}  // namespace

std::vector<std::string> plain_test(const CommandLine& command_line, int expected, double time_limit,
                                    bool json, const std::string& report_file) {
  const Environment environment = Environment::of_process();
  const std::string requested = value_in(command_line.flags, key::python).value_or("");
  const Python python = find_python(requested, environment, kind_of_file, {.path = program_path()});
  const std::string count = fmt::to_string(expected);
  const std::string limit = fmt::format("{:g}", time_limit);
  const std::string format = json ? "json" : "text";
  const std::string file = python.file.empty() ? python.word : python.file.string();
  if (!python.problem && has_torch(file, environment))
    return {file,       "-u", "-c", std::string(kTraining), count, limit, format, std::string(kNotInstalled),
            report_file};
  const std::string reason = python.problem ? "no Python was found" : file + " has no torch";
  return {(program_folder() / "acc").string(),
          "test",
          kPlainTestWorker,
          count,
          limit,
          format,
          fmt::format("a training in Python ({}); {}", reason, kNotInstalled),
          report_file};
}

int plain_test_worker(const std::vector<std::string>& words) {
  const Environment environment = Environment::of_process();
  const bool has_rank = environment.contains("RANK");
  const WorkerEnv worker = has_rank ? read_worker_env(environment) : WorkerEnv();
  const auto expected = parse_integer(words.at(0));
  const auto seconds = parse_number(words.at(1));
  const std::string& not_tested = words.at(3);
  // A single process may have no rank; then there is no store.
  const std::string name = has_rank ? "store" : "start";
  if (worker.world_size != expected)
    fail_step(worker, name, fmt::format("{} processes instead of {}", worker.world_size, words.at(0)));
  const std::chrono::milliseconds limit = to_milliseconds(seconds.value_or(60));
  const double took = has_rank ? meet_in_store(worker, limit) : 0;
  if (worker.rank != 0) return 0;
  const nlohmann::json check = {{"name", name}, {"passed", true}, {"seconds", took}, {"failure", ""}};
  const nlohmann::json report = {{"schema", 1},
                                 {"passed", true},
                                 {"error", ""},
                                 {"num_processes", worker.world_size},
                                 {"checks", nlohmann::json::array({check})},
                                 {"not_tested", not_tested}};
  if (const std::string& file = words.at(4); !file.empty()) std::ofstream(file) << report.dump();
  if (words.at(2) == "json") {
    fmt::print("{}\n", report.dump());
    return 0;
  }
  fmt::print("acc test: {}\n{:<24} ok ({:.1f} ms)\nnot tested: {}\n", pluralize(worker.world_size, "process"),
             name, took * 1e3, not_tested);
  return 0;
}

}  // namespace acc::launcher
