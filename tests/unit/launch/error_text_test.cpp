// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/error_text.hpp"

#include "support/catch.hpp"

using acc::launcher::readable_error;

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

TEST_CASE("error_text: other text stays as it is", "[launch]") {
  CHECK(readable_error("").empty());
  CHECK(readable_error("one\n\ntwo") == "one\n\ntwo");
  CHECK(readable_error("frame rate: 3\n#1 first\n") == "frame rate: 3\n#1 first\n");
}
