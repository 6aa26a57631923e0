// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/error_text.hpp"

#include <string>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace error_text_test {

using acc::launcher::readable_error;
using acc::launcher::Tail;

namespace {

std::string numbered(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

}  // namespace

TEST_CASE("error_text: the frames of LibTorch's own stack are left out", "[launch]") {
  CHECK(readable_error(
            "terminate called after throwing an instance of 'c10::Error'\n"
            "  what():  mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)\n"
            "Exception raised from meta at /pytorch/aten/src/ATen/native/LinearAlgebra.cpp:198 (most "
            "recent call first):\n"
            "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x80 (0x7f in libc10.so)\n"
            "frame #1: <unknown function> + 0x2a1ca (0x7f in /lib/libc.so.6)\n"
            "\n") ==
        "terminate called after throwing an instance of 'c10::Error'\n"
        "  what():  mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)\n");
  CHECK(readable_error("[rank1]: RuntimeError: bad\n"
                       "[rank1]: Exception raised from f at a.cpp:1 (most recent call first):\n"
                       "[rank1]: C++ CapturedTraceback:\n"
                       "[rank1]: #4 c10::Error::Error() from ??:0\n"
                       "[rank1]: #5 main from ??:0\n"
                       "after\n#1 of a list\n") == "[rank1]: RuntimeError: bad\nafter\n#1 of a list\n");
}

TEST_CASE("error_text: warnings that come after the error are left out", "[launch]") {
  CHECK(readable_error(
            "train.py:1: UserWarning: before\n"
            "  import old\n"
            "ValueError: boom\n"
            "[rank0]:[W1122 13:59:06.123456789 ProcessGroupNCCL.cpp:1496] Warning: WARNING: "
            "destroy_process_group() was not called before program exit (function ~ProcessGroupNCCL)\n"
            "/usr/lib/python3.11/multiprocessing/resource_tracker.py:224: UserWarning: resource_tracker: "
            "There appear to be 1 leaked semaphore objects to clean up at shutdown\n"
            "  warnings.warn('resource_tracker: There appear to be %d '\n") ==
        "train.py:1: UserWarning: before\n  import old\nValueError: boom\n");
  CHECK(readable_error("x.py:3: FutureWarning: all there is\n") == "x.py:3: FutureWarning: all there is\n");
  CHECK(readable_error("Warning: of the program itself\n") == "Warning: of the program itself\n");
}

TEST_CASE("error_text: other text is unchanged", "[launch]") {
  CHECK(readable_error("").empty());
  CHECK(readable_error("one\n\ntwo") == "one\n\ntwo");
  CHECK(readable_error("frame rate: 3\n#1 first\n") == "frame rate: 3\n#1 first\n");
}

TEST_CASE("tail: keeps the last 30 lines", "[launch]") {
  Tail tail;
  CHECK(tail.lines().empty());
  tail.append(numbered(1, 30));
  CHECK(tail.lines() == numbered(1, 30));
  tail.append(numbered(31, 40));
  CHECK(tail.lines() == numbered(11, 40));
  tail.append("rest");
  CHECK(tail.lines() == numbered(12, 40) + "rest");
}

TEST_CASE("tail: keeps at most 16 KiB, in whole lines", "[launch]") {
  Tail tail;
  for (int i = 0; i < 1000; ++i) tail.append(std::string(999, 'x') + "\n");
  CHECK(tail.lines().size() == 16000);
}

TEST_CASE("tail: keeps the end of an endless line", "[launch]") {
  Tail tail;
  tail.append(std::string(100'000, 'x') + "end");
  CHECK(tail.lines().size() == Tail::kMaxBytes);
  CHECK(tail.lines().ends_with("xend"));
}

TEST_CASE("tail: reads the last lines of a file", "[launch]") {
  const acc::test::TemporaryFolder folder;
  CHECK(acc::launcher::tail_of_file(folder.path() / "none").empty());
  CHECK(acc::launcher::tail_of_file(folder.write("short", "a\nb")) == "a\nb");
  const std::string lines = numbered(1, 5000);
  CHECK(acc::launcher::tail_of_file(folder.write("long", lines)) == numbered(4971, 5000));
  const std::string exact = std::string(999, 'x') + "\n";
  std::string wide;
  for (int i = 0; i < 20; ++i) wide += exact;
  CHECK(acc::launcher::tail_of_file(folder.write("wide", wide)).size() == 16000);
}

TEST_CASE("tail: LibTorch's frames and warnings at the end do not displace the error", "[launch]") {
  Tail tail;
  tail.append("RuntimeError: boom\nException raised from f at g.cpp:1 (most recent call first):\n");
  for (int i = 0; i < 18; ++i)
    tail.append("frame #" + std::to_string(i) + ": " + std::string(1000, 'f') +
                " (0x7f in libtorch_cpu.so)\n");
  for (int i = 0; i < 30; ++i) tail.append("t.py:1: UserWarning: leaked\n  warnings.warn('leaked')\n");
  CHECK(tail.lines() == "RuntimeError: boom\n");
}

}  // namespace error_text_test
