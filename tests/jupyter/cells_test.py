#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How a notebook's cell is split into declarations and statements: apps/notebook/acc_notebook/cells.py, without Jupyter."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "apps/notebook"))
from acc_notebook import cells  # noqa: E402


def split(cell):
    """(line, text, declares) of each piece, texts without the spaces that hold their column."""
    return [(piece.line, piece.text.strip(), piece.declares) for piece in cells.split(cell)]


def declares(text):
    """Of a cell that is one piece."""
    pieces = cells.split(text)
    assert len(pieces) == 1, pieces
    return pieces[0].declares


class Split(unittest.TestCase):
    def test_statements_run_one_by_one(self):
        self.assertEqual(split("int a = 1; int b = 2;\nfoo(a);\n\nb"),
                         [(1, "int a = 1;", False), (1, "int b = 2;", False), (2, "foo(a);", False), (4, "b", False)])

    def test_a_piece_keeps_its_column(self):
        self.assertEqual([piece.text for piece in cells.split("f(); g();")], ["f();", "     g();"])

    def test_consecutive_declarations_are_one_piece_with_their_lines(self):
        cell = "#include <map>\n// why\n\nstruct A {\n  int a;\n};\nint f(A a) { return a.a; }  int g() { return 1; }\nf({1})"
        pieces = cells.split(cell)
        self.assertEqual([(piece.line, piece.declares) for piece in pieces], [(1, True), (8, False)])
        for wanted in ("struct A {", "int f(A a)"):
            line = next(number for number, text in enumerate(pieces[0].text.splitlines(), 1) if wanted in text)
            self.assertEqual(line, next(n for n, text in enumerate(cell.splitlines(), 1) if wanted in text))

    def test_what_stands_outside_of_functions(self):
        for text in ("struct A { int a; };", "struct A { int a; } one;", "class B : public A { B() {} };", "enum class E { a, b };",
                     "union U { int a; };", "namespace n { int k = 3; }", "namespace n = std;", "using V = std::vector<int>;",
                     "using namespace std;", "typedef int I;", "template <class T = int> T twice(T t) { return t + t; }",
                     "template <class T> requires std::integral<T> auto f(T t) -> bool { return t; }",
                     "template <class T> struct S { T t; };", 'extern "C" { int k; }', 'extern "C" int f() { return 1; }',
                     "static_assert(sizeof(int) == 4);", "int f() { return 1; }", "int main() try { return 1; } catch (...) { }",
                     "inline constexpr int f(int a = 3) noexcept { return a; }", "auto f(int a) -> int { return a; }",
                     "std::map<int, std::vector<int>> f(const A& a) { return {}; }", "unsigned long long f() { return 1; }",
                     "int A::f() const { return 1; }", "A::A() : a{1}, b(2) { f(); }", "A::~A() { f(); }",
                     "bool operator==(A a, B b) { return true; }", "A& A::operator=(const A& a) { return *this; }",
                     "std::ostream& operator<<(std::ostream& out, A a) { return out; }", "struct A make() { return {}; }", 'TORCH_LIBRARY(mine, m) { m.def("f"); }',
                     "[[nodiscard]] int f() { return 1; }", "auto [a, b] = f();", "const auto& [a, b] = f();",
                     "#define X(a) \\\n  a + 1", "#if 1\nint a;\n#else\nf();\n#endif", "static int f(int) { return 1; }"):
            with self.subTest(text):
                self.assertTrue(declares(text))

    def test_what_runs(self):
        for text in ("int a = 1;", "const int a{1};", "static int a = 1;", "auto f = [&](int x) { return x; };",
                     "auto f = []<class T>(T t) -> T { return t; };", "std::vector<int> v{1, 2};", "std::vector<int> v = {1, 2};",
                     "[] { return 3; }();", "for (int i = 0; i < 3; ++i) { f(i); }", "for (auto& [a, b] : all) f(a);",
                     "while (a) { f(); }", "do { f(); } while (a);", "if (a) { f(); } else if (b) { g(); } else { h(); }",
                     "if (a) f(); else g();", "if constexpr (kA) { f(); }", "switch (a) { case 1: f(); default: g(); }",
                     "try { f(); } catch (const E& e) { g(); } catch (...) { h(); }", "{ int a; f(a); }", "return;",
                     "throw std::runtime_error(\"x\");", "delete a;", "f({1, 2}, [] { return 1; });", "a[3] = {1};",
                     "std::thread t([] { f(); });", "Net net;", "[[maybe_unused]] int a = 1;", "operators = 3;",
                     "auto all = acc::notebook_launcher(train, std::tuple{1, 2}, {.num_processes = 2});", "int big = 1'000'000;"):
            with self.subTest(text):
                self.assertFalse(declares(text))

    def test_brackets_in_texts_and_comments_do_not_count(self):
        for text in ('f("};{");', "f('}');", 'f(R"(};\n")");', 'f(R"x(})" })x");', "f(1 /* }; */);", "f(1);  // };"):
            with self.subTest(text):
                self.assertEqual([piece.declares for piece in cells.split(text)], [False])

    def test_directives_inside_of_a_piece_stay_there(self):
        cell = "int f() {\n#ifdef X\n  return 1;\n#endif\n  return 2;\n}"
        self.assertEqual(split(cell), [(1, cell, True)])

    def test_comments_alone_are_nothing(self):
        self.assertEqual(split("// a\n/* b */\n;\n"), [])

    def test_a_module_is_written_out_so_that_it_can_be_declared_again(self):
        (piece,) = cells.split("struct NetImpl : torch::nn::Module {};\nTORCH_MODULE(Net);")
        self.assertIn("class Net : public torch::nn::ModuleHolder<NetImpl> {", piece.text)

    def test_what_is_not_closed_is_said_with_its_line(self):
        for text, told in (("f();\nint g() {\n  h();", "line 2: '{' is not closed"), ("f(;\n}", "line 2: '}' closes nothing"),
                           ("\nf(]);", "line 2: ']' closes nothing"), ('f("a);', "line 1: \" is not closed"),
                           ("int a = 'b;", "line 1: ' is not closed"), ("a;\n/* b", "line 2: the comment is not closed"),
                           ('R"(a)', "line 1: the raw string is not closed"), ("#if 1\na;", "line 1: #if without #endif")):
            with self.subTest(text):
                with self.assertRaises(cells.CellError) as error:
                    cells.split(text)
                self.assertEqual(str(error.exception), told)


if __name__ == "__main__":
    unittest.main()
