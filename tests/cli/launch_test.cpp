// SPDX-License-Identifier: Apache-2.0
// The output and exit codes of `acc launch` before it starts workers.
#include <csignal>
#include <nlohmann/json.hpp>
#include <regex>

#include "support/catch.hpp"
#include "support/run.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"

namespace launch_test {

using acc::test::clean_environment;
using acc::test::Run;
using acc::test::TemporaryFolder;

namespace {

// `acc ARGUMENTS` in a folder of its own, which is also its HOME.
class Cli {
 public:
  Run operator()(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "acc");
    return acc::test::run(arguments, environment, "", folder.path().string());
  }

  TemporaryFolder folder = {};
  acc::Environment environment = clean_environment(folder.path().string());
};

}  // namespace

TEST_CASE("cli: a wrong flag is one line with the nearest one, exit 2, and nothing starts", "[cli]") {
  const Cli acc;
  acc.folder.write("train.py", "open('started', 'w')\n");
  const Run run = acc({"launch", "--num_procs", "2", "train.py"});
  CHECK(run.code == 2);
  CHECK(run.err.find("--num_procs (did you mean '--num_processes'?)") != std::string::npos);
  CHECK(std::ranges::count(run.err, '\n') == 1);
  CHECK(run.out.empty());
  CHECK_FALSE(std::filesystem::exists(acc.folder.path() / "started"));
}

TEST_CASE("cli: a missing program, a folder, a file without permission: one line each, exit 2", "[cli]") {
  const Cli acc;
  acc.folder.write("script", "#!/bin/sh\n");
  std::filesystem::create_directory(acc.folder.path() / "data");
  const auto refusal = [&](const std::string& program) {
    const Run run = acc({"launch", program});
    CHECK(run.code == 2);
    return run.err;
  };
  CHECK(refusal("missing.py") ==
        "acc: missing.py: no such program (paths are relative to the current folder)\n");
  CHECK(refusal("./data") == "acc: ./data: is a directory, not a program\n");
  CHECK(refusal("./script") == "acc: ./script: is not executable (chmod +x ./script)\n");
}

TEST_CASE("cli: an empty name of a config file is one line, exit 2", "[cli]") {
  const Cli acc;
  acc.folder.write("train.py", "");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"launch", "--config_file", "", "train.py"},
        {"to-fsdp2", "--config_file", "", "--overwrite"}}) {
    const Run run = acc(words);
    CHECK(run.code == 2);
    CHECK(run.err == "acc: --config_file: is empty (name a file)\n");
  }
}

TEST_CASE("cli: all problems of an invalid config file are reported with file:line, exit 2", "[cli]") {
  const Cli acc;
  acc.folder.write("train.py", "open('started', 'w')\n");
  acc.folder.write("job.yaml", "distributed_type: MULTI_CPU\nnum_proceses: 2\nmixed_precision: fp32\n");
  const Run run = acc({"launch", "--config_file", "job.yaml", "train.py"});
  CHECK(run.code == 2);
  CHECK(run.err.find("job.yaml:2") != std::string::npos);
  CHECK(run.err.find("did you mean 'num_processes'?") != std::string::npos);
  CHECK(run.err.find("job.yaml:3") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(acc.folder.path() / "started"));
}

TEST_CASE("cli: a dry run shows each value with its origin and starts nothing", "[cli]") {
  const Cli acc;
  acc.folder.write("train.py", "open('started', 'w')\n");
  acc.folder.write("job.yaml", "distributed_type: MULTI_CPU\nnum_processes: 2\nmixed_precision: bf16\n");
  const Run run =
      acc({"launch", "--config_file", "job.yaml", "--max-restarts", "1", "--dry_run=json", "train.py"});
  REQUIRE(run.code == 0);
  const auto json = nlohmann::json::parse(run.out);
  CHECK(json["settings"]["num_processes"]["origin"] == "job.yaml:2");
  CHECK(json["settings"]["max_restarts"]["origin"] == "--max-restarts");
  CHECK(json["workers"].size() == 2);
  CHECK(acc({"launch", "--config_file", "job.yaml", "--dry_run", "train.py"}).out.find("job.yaml:3") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(acc.folder.path() / "started"));
  // A name that is not UTF-8 is shown as far as it can be.
  const Run odd = acc({"launch", "--cpu", "--log_dir", "logs-\xff", "--dry_run=json", "train.py"});
  REQUIRE(odd.code == 0);
  CHECK(nlohmann::json::parse(odd.out)["settings"]["log_dir"]["value"] == "logs-\xef\xbf\xbd");
}

TEST_CASE("cli: the default file is read from HF_HOME, but not by torchrun's rules, nor with --cpu",
          "[cli]") {
  const Cli acc;
  Cli with_home;
  with_home.environment.set("HF_HOME", (with_home.folder.path() / "hf").string());
  with_home.folder.write("hf/accelerate/default_config.yaml",
                         "distributed_type: MULTI_CPU\nnum_processes: 3\n");
  with_home.folder.write("train.py", "");
  const auto workers = [&](const std::vector<std::string>& words) {
    return nlohmann::json::parse(with_home(words).out)["workers"].size();
  };
  CHECK(workers({"launch", "--dry_run=json", "train.py"}) == 3);
  CHECK(workers({"launch", "--cpu", "--dry_run=json", "train.py"}) == 1);
  CHECK(workers({"run", "--dry-run=json", "train.py"}) == 1);
}

TEST_CASE("cli: a program runs, its arguments and exit code are its own", "[cli]") {
  const Cli acc;
  const Run run = acc({"launch", "--nproc-per-node", "1", "/bin/sh", "-c",
                       "echo rank $RANK of $WORLD_SIZE \"$1\"; exit 42", "sh", "$HOME"});
  CHECK(run.code == 42);
  CHECK(run.out == "rank 0 of 1 $HOME\n");
  CHECK(acc({"launch", "/bin/true"}).code == 0);
}

TEST_CASE("cli: who started acc may ignore SIGCHLD, and may have children that read its output", "[cli]") {
  const Cli acc;
  const auto run = [&](const std::string& script) {
    return acc::test::run({"/usr/bin/env", "python3", "-c", script}, acc.environment, "",
                          acc.folder.path().string());
  };
  const std::string program = (acc::program_folder() / "acc").string();
  const std::string execute =
      "os.execl('" + program + "', 'acc', 'launch', '--nproc-per-node', '2', '--no-python', 'sh', '-c', ";
  CHECK(run("import os, signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); " + execute + "'exit 7')")
            .code == 7);
  // As `acc … > >(reader)` of a shell. It reads when acc has ended.
  const Run late = run(R"(import os, subprocess, sys
end, begin = os.pipe()
read = 'import os, sys\nwhile os.getppid() == int(sys.argv[1]): os.sched_yield()\nprint(len(sys.stdin.readlines()))'
subprocess.Popen([sys.executable, '-c', read, str(os.getpid())], stdin=end)
os.dup2(begin, 1)
)" + execute + "'seq 1 1000')");
  CHECK(late.code == 0);
  CHECK(late.out == "2000\n");
}

TEST_CASE("cli: SIGUSR1 stays ignored by acc and its workers, unless --signals-to-handle names it", "[cli]") {
  const Cli acc;
  const std::string program = (acc::program_folder() / "acc").string();
  const auto code_with = [&](const std::string& flags) {
    const std::string script = "trap '' USR1; exec " + program + " run " + flags +
                               " --nproc-per-node 1 --no-python sh -c 'kill -USR1 $PPID $$; exit 7'";
    return acc::test::run({"/bin/sh", "-c", script}, acc.environment).code;
  };
  CHECK(code_with("") == 7);
  CHECK(code_with("--signals-to-handle SIGUSR1") == 128 + SIGUSR1);
}

TEST_CASE("cli: called torchrun, acc follows torchrun's rules", "[cli]") {
  const Cli acc;
  const auto link = acc.folder.path() / "torchrun";
  const Run where = acc({"launch", "/bin/sh", "-c", "readlink /proc/$PPID/exe"});
  REQUIRE(where.code == 0);
  std::filesystem::create_symlink(where.out.substr(0, where.out.find('\n')), link);
  const Run run = acc::test::run(
      {link.string(), "--standalone", "--nproc=2", "--no-python", "/bin/sh", "-c", "echo $OMP_NUM_THREADS"},
      acc.environment);
  CHECK(run.code == 0);
  CHECK(run.out == "1\n1\n");
}

TEST_CASE("cli: help and version need no config", "[cli]") {
  const Cli acc;
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"},
                                                {"launch", "--help"},
                                                {"run", "-h"},
                                                {"config", "--help"},
                                                {"test", "--help"}}) {
    const Run run = acc(words);
    CHECK(run.code == 0);
    CHECK(run.out.find("acc") != std::string::npos);
    CHECK(run.err.empty());
  }
  const std::string version = acc({"--version"}).out;
  CHECK(std::regex_match(version,
                         std::regex("acc [0-9.]+\ncommit ([0-9a-f]{12}|unknown), [A-Za-z]+ build by .* for "
                                    "glibc [0-9.]+, with(out libacc| libacc for LibTorch [0-9.]+)\n")));
  const auto facts = nlohmann::json::parse(acc({"--version", "--json"}).out);
  CHECK(version.starts_with("acc " + facts.at("version").get<std::string>() + "\n"));
  CHECK(version.find("commit " + facts.at("commit").get<std::string>().substr(0, 12) + ",") !=
        std::string::npos);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"launch"},
                                                {"run"},
                                                {"test"},
                                                {"config"},
                                                {"config", "check"},
                                                {"estimate-memory"},
                                                {"merge-weights"},
                                                {"to-fsdp2"},
                                                {"tpu-config"},
                                                {"notebook"},
                                                {"notebook", "install"},
                                                {"ps"},
                                                {"logs"},
                                                {"stop"},
                                                {"env"},
                                                {"completion"}}) {
    std::vector<std::string> with_version = words;
    with_version.emplace_back("--version");
    INFO(words.front());
    CHECK(acc(with_version).out == version);
  }
}

TEST_CASE("cli: an unknown subcommand is one line, exit 2", "[cli]") {
  const Cli acc;
  const Run run = acc({"lunch", "train.py"});
  CHECK(run.code == 2);
  CHECK(run.err.starts_with("acc: "));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
}

TEST_CASE("cli: acc uses no torch, CUDA or Python library", "[cli]") {
  const Cli acc;
  const Run where = acc({"launch", "/bin/sh", "-c", "ldd $(readlink /proc/$PPID/exe)"});
  REQUIRE(where.code == 0);
  // By whole names: an address may have c10 in it.
  for (const char* library : {"libtorch", "libcuda", "libpython", "libc10"}) {
    INFO(where.out);
    CHECK(where.out.find(library) == std::string::npos);
  }
}

TEST_CASE("cli: a script may come from standard input", "[cli]") {
  const Cli acc;
  for (const char* name : {"-", "/dev/stdin"}) {
    const Run run = acc::test::run({"acc", "run", "--standalone", name, "x"}, acc.environment,
                                   "import sys\nprint('ran with', sys.argv[1])\n");
    CHECK(run.err.empty());
    CHECK(run.out == "ran with x\n");
    CHECK(run.code == 0);
  }
}

TEST_CASE("cli: for a missing module the report names the Python, and why it was chosen", "[cli]") {
  const Cli acc;
  acc.folder.write("train.py", "import no_such_module\n");
  const Run run = acc({"launch", "train.py"});
  CHECK(run.code == 1);
  CHECK(run.err.find("  its Python: ") != std::string::npos);
  CHECK(run.err.find(" (PATH); choose another with --python\n") != std::string::npos);
  const Run dry = acc({"launch", "--dry_run=json", "train.py"});
  CHECK(nlohmann::json::parse(dry.out)["settings"]["python"]["origin"] == "PATH");
}

TEST_CASE("cli: acc in a virtual environment uses its Python, even if another is first on PATH", "[cli]") {
  const Cli acc;
  acc.folder.write("env/pyvenv.cfg", "");
  acc.folder.write("train.py", "");
  const auto python = acc.folder.write("env/bin/python", "#!/bin/sh\necho of the environment\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const Run where = acc({"launch", "/bin/sh", "-c", "readlink /proc/$PPID/exe"});
  const auto link = acc.folder.path() / "env/bin/acc";
  std::filesystem::create_symlink(where.out.substr(0, where.out.find('\n')), link);
  const Run run =
      acc::test::run({link.string(), "launch", "train.py"}, acc.environment, "", acc.folder.path().string());
  CHECK(run.out == "of the environment\n");
}

TEST_CASE("cli: a TMPDIR that cannot be used is noted, and the job runs", "[cli]") {
  Cli acc;
  acc.environment.set("TMPDIR", "/no/such/folder");
  const Run run = acc({"run", "--standalone", "--tee", "1", "--no-python", "/bin/echo", "ran"});
  CHECK(run.code == 0);
  CHECK(run.err.starts_with("acc: TMPDIR (/no/such/folder) cannot be written: "));
  CHECK(std::ranges::count(run.err, '\n') == 1);
  acc.environment.set("TMPDIR", "/proc");
  const Run unwritable =
      acc({"launch", "--nproc-per-node", "1", "--tee", "3", "--no-python", "/bin/echo", "hi"});
  CHECK(unwritable.code == 0);
  CHECK(unwritable.err.starts_with("acc: TMPDIR (/proc) cannot be written: "));
  CHECK(std::ranges::count(unwritable.err, '\n') == 1);
  CHECK(run.out == "[default0]:ran\n");
}

TEST_CASE("cli: under torchrun's rules a job restarts on every exit code", "[cli]") {
  const Cli acc;
  for (const int code : {2, 126, 127}) {
    const std::string script = "test $TORCHELASTIC_RESTART_COUNT = 1 || exit " + std::to_string(code);
    const auto words = [&](const std::string& command) {
      return std::vector<std::string>{
          command, "--nproc-per-node", "1", "--max-restarts", "1", "--no-python", "/bin/sh", "-c", script};
    };
    CHECK(acc(words("run")).code == 0);
    CHECK(acc(words("launch")).code == code);
  }
}

TEST_CASE(
    "cli: log folders and event logs may have any path; a missing folder is made for folders, named for "
    "files",
    "[cli]") {
  const Cli acc;
  std::filesystem::create_directory(acc.folder.path() / "real");
  std::filesystem::create_directory_symlink("real", acc.folder.path() / "link");
  const std::string absolute = (acc.folder.path() / "absolute").string();
  for (const std::string& name : {std::string("x"), std::string("./y"), std::string("a/x"), absolute,
                                  std::string("two words"), std::string("link")}) {
    INFO(name);
    CHECK(acc({"run", "--standalone", "--log-dir", name, "--redirects", "1", "--no-python", "/bin/echo"})
              .code == 0);
    CHECK_FALSE(std::filesystem::is_empty(acc.folder.path() / name));
    const Run events =
        acc({"run", "--standalone", "--event-log", name + ".jsonl", "--no-python", "/bin/true"});
    CHECK(events.code == 0);
    CHECK(std::filesystem::file_size(acc.folder.path() / (name + ".jsonl")) > 0);
  }
  const Run missing = acc({"run", "--standalone", "--event-log", "b/x", "--no-python", "/bin/true"});
  CHECK(missing.code == 1);
  CHECK(missing.err.starts_with("acc: b/x: the event log cannot be written: no such folder: b "));
  CHECK(std::ranges::count(missing.err, '\n') == 1);
}

TEST_CASE("cli: a program that is gone at a restart hides neither the failure nor its logs", "[cli]") {
  Cli acc;
  acc.environment.set("TMPDIR", acc.folder.path().string());
  const auto program = acc.folder.write("prog", "#!/bin/sh\necho why >&2\nrm -- \"$0\"\nexit 5\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const Run run = acc({"run", "--standalone", "-r", "3", "--max-restarts", "3", "--no-python", "./prog"});
  CHECK(run.code == 5);
  CHECK(run.err.find("acc: warning: the workers cannot be started again: ./prog: cannot be started: No such "
                     "file or directory\nacc: rank 0 ") != std::string::npos);
  std::vector<std::string> texts;
  for (const auto& file : std::filesystem::recursive_directory_iterator(acc.folder.path())) {
    if (file.path().parent_path().parent_path().filename() == "attempt_0" &&
        file.path().filename() == "stderr.log")
      texts.push_back(acc.folder.read(std::filesystem::relative(file.path(), acc.folder.path()).string()));
  }
  CHECK(texts == std::vector<std::string>{"why\n"});
}

TEST_CASE("cli: in a removed folder each command is one error line", "[cli]") {
  const Cli acc;
  for (const std::string& command :
       {std::string("launch train.py"), std::string("launch /bin/true"), std::string("run train.py"),
        std::string("config --yes --config_file c.yaml"), std::string("config check c.yaml"),
        std::string("merge-weights a b"), std::string("estimate-memory x"),
        std::string("to-fsdp2 --config_file c.yaml --overwrite")}) {
    INFO(command);
    const Run run =
        acc({"launch", "--quiet", "/bin/sh", "-c",
             "mkdir gone && cd gone && rmdir ../gone && exec $(readlink /proc/$PPID/exe) " + command});
    INFO(run.err);
    CHECK((run.code == 1 || run.code == 2));
    CHECK(run.err.starts_with("acc: "));
    CHECK(run.err.find("internal error") == std::string::npos);
  }
}

TEST_CASE("cli: if /dev/shm is full, error files go to /tmp", "[cli]") {
  const Cli acc;
  if (acc({"launch", "--quiet", "unshare", "--mount", "mount", "-t", "tmpfs", "none", "/dev/shm"}).code !=
      0) {
    acc::test::skip("no file system can be mounted");
    return;
  }
  const Run run = acc({"launch", "--quiet", "/bin/sh", "-c",
                       "export ACC=$(readlink /proc/$PPID/exe); exec unshare --mount sh -c '"
                       "mount -t tmpfs -o nr_inodes=3 none /dev/shm && "
                       "$ACC run --standalone --no-python /bin/sh -c \"echo \\$TORCHELASTIC_ERROR_FILE\"'"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(run.out.starts_with("/tmp/torchelastic_"));
}

TEST_CASE("cli: assumptions without a config file are noted only on a terminal", "[cli]") {
  const Cli acc;
  CHECK(acc({"launch", "/bin/true"}).err.empty());
  const auto in_terminal = [&](const std::string& command) {
    return acc({"launch", "--quiet", "/bin/sh", "-c",
                "exec script -qec \"$(readlink /proc/$PPID/exe) " + command + "\" /dev/null"})
        .out;
  };
  CHECK(
      in_terminal("launch --mixed_precision no /bin/true") ==
      "acc: there is no config file: 1 process, 1 machine (`acc config` writes one, --quiet hides this)\r\n");
  CHECK(in_terminal("launch --quiet /bin/true").empty());
  CHECK(in_terminal("run /bin/true").empty());
}

TEST_CASE("cli: menus obey NO_COLOR, and a dumb terminal gets plain lines", "[cli]") {
  const Cli acc;
  const auto screen = [&](const std::string& variable) {
    const std::string enters(30, '\n');
    acc::Environment environment = acc.environment;
    environment.set("ENTERS", enters);
    return acc::test::run({"acc", "launch", "--quiet", "/bin/sh", "-c",
                           "ACC=$(readlink /proc/$PPID/exe); printf '%s' \"$ENTERS\" | " + variable +
                               " script -qec \"$ACC config --config_file c.yaml\" /dev/null"},
                          environment, "", acc.folder.path().string())
        .out;
  };
  const std::string plain = screen("TERM=dumb");
  CHECK(plain.find("saved at c.yaml") != std::string::npos);
  CHECK(plain.find('\x1b') == std::string::npos);
  const std::string drawn = screen("TERM=xterm NO_COLOR=1");
  CHECK(drawn.find("saved at c.yaml") != std::string::npos);
  CHECK(drawn.find("\x1b[?25l") != std::string::npos);
  CHECK(drawn.find("\x1b[32m") == std::string::npos);
  CHECK(screen("TERM=xterm").find("\x1b[32m") != std::string::npos);
}

TEST_CASE("cli: the log level comes from the flag, else ACC_LOG_LEVEL, else LOGLEVEL", "[cli]") {
  Cli acc;
  const auto says_more = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "launch");
    flags.emplace_back("/bin/true");
    const Run run = acc(flags);
    CHECK(run.code == 0);
    return run.err.find("acc: debug: rank 0 (local rank 0) is process ") != std::string::npos;
  };
  CHECK_FALSE(says_more({}));
  CHECK(says_more({"-v"}));
  acc.environment.set("LOGLEVEL", "DEBUG");
  CHECK(says_more({}));
  CHECK_FALSE(says_more({"-q"}));
  acc.environment.set("ACC_LOG_LEVEL", "info");
  CHECK_FALSE(says_more({}));
  CHECK(says_more({"--log-level", "trace"}));
  acc.environment.set("ACC_LOG_LEVEL", "loud");
  const Run run = acc({"launch", "/bin/true"});
  CHECK(run.code == 0);
  CHECK(run.err.starts_with("acc: warning: ACC_LOG_LEVEL: 'loud' is not a log level "));
  CHECK(run.err.find('\n') == run.err.find("\nacc: debug: "));
  CHECK(says_more({"-v"}));
  CHECK_FALSE(says_more({"-q"}));
}

TEST_CASE("cli: off does not change the exit code, and every other level reports a failure", "[cli]") {
  const Cli acc;
  for (const std::string level : {"error", "warn"}) {
    const Run run = acc({"launch", "--log-level", level, "/bin/sh", "-c", "exit 3"});
    CHECK(run.code == 3);
    CHECK(run.err.find("failed with exit code 3") != std::string::npos);
  }
  const Run off = acc({"launch", "--log-level", "off", "/bin/sh", "-c", "exit 3"});
  CHECK(off.code == 3);
  CHECK(off.err.empty());
  CHECK(acc({"launch", "--log-level", "loud", "/bin/true"}).code == 2);
}

TEST_CASE("cli: a log file gets the messages and reports of all of acc's processes", "[cli]") {
  const Cli acc;
  const Run run = acc({"run", "--log-level", "debug", "--log-file", "logs/acc.log", "--log-pattern", "%l|%v",
                       "--nproc-per-node", "2", "--no-python", "/bin/sh", "-c", "exit $LOCAL_RANK"});
  CHECK(run.code == 1);
  const std::string text = acc.folder.read("logs/acc.log");
  CHECK(text.find("debug|attempt 0 begins\n") != std::string::npos);
  CHECK(text.find("error|rank 1 ") != std::string::npos);
  CHECK(run.err == text);
  const Run refused = acc({"launch", "--log-file", "/dev/null/acc.log", "/bin/true"});
  CHECK(refused.code == 1);
  CHECK(refused.err.find("acc: --log-file: ") == 0);
}

TEST_CASE("cli: a log file that cannot be written is said once, and makes nobody wait", "[cli]") {
  const Cli acc;
  const Run full = acc({"launch", "--log-level", "debug", "--log-file", "/dev/full", "/bin/true"});
  CHECK(full.code == 0);
  const std::string warning = "acc: warning: the log file cannot be written: No space left on device\n";
  const std::size_t first = full.err.find(warning);
  CHECK(first != std::string::npos);
  CHECK(full.err.find(warning, first + 1) == std::string::npos);
  // A file that takes a part of the second line.
  const Run limited =
      acc::test::run({"/bin/sh", "-c",
                      "trap '' XFSZ; ulimit -f 1; exec \"$0\" launch --log-level debug --log-file log "
                      "--log-pattern \"$(printf %0300d)%v\" /bin/true",
                      (acc::program_folder() / "acc").string()},
                     acc.environment, "", acc.folder.path().string());
  CHECK(limited.code == 0);
  CHECK(limited.err.find("the log file cannot be written: File too large\n") != std::string::npos);
  const Run pipe =
      acc::test::run({"/bin/sh", "-c", "mkfifo pipe; exec \"$0\" launch --log-file pipe /bin/true",
                      (acc::program_folder() / "acc").string()},
                     acc.environment, "", acc.folder.path().string());
  CHECK(pipe.code == 1);
  CHECK(pipe.err == "acc: --log-file: pipe cannot be written: it is a pipe without a reader\n");
}

TEST_CASE("cli: a soft limit of open files is no limit for acc, and its workers keep it", "[cli]") {
  const Cli acc;
  for (const char* files : {"9", "12"}) {
    const Run run = acc::test::run(
        {"/bin/sh", "-c", "ulimit -Sn $1; exec \"$0\" run --nproc-per-node 2 --no-python sh -c 'ulimit -Sn'",
         (acc::program_folder() / "acc").string(), files},
        acc.environment, "", acc.folder.path().string());
    INFO(run.err);
    CHECK(run.code == 0);
    CHECK(run.out == std::string(files) + "\n" + files + "\n");
  }
}

}  // namespace launch_test
