"""C99: what each operation of numbers is there, and the file of functions: numbers in, pointers out, no allocation."""

from __future__ import annotations

from gradcli.codegen.helpers import calls, helpers, needed
from gradcli.codegen.line_rules import STRUCTURAL
from gradcli.codegen.lines import filled
from gradcli.codegen.loops import LoopWriter
from gradcli.codegen.number_language import NumberLanguage, rules
from gradcli.codegen.program import Function, Program, about_lines, pattern_lines, self_test
from gradcli.graph.array import Named
from gradcli.loops.rules import RULES as RULES_OF_LOOPS

HELPERS = helpers("helpers.c")
RULES = rules("c")
# What a function's names must not be: words of C's, of its library, and what the file uses or may call.
_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while main printf PI
j0 j1 jn y0 y1 yn gamma signgam div abs remainder index time exp2 exp10 logb scalb significand drem
alignas alignof asm bool constexpr false nullptr static_assert thread_local true typeof typeof_unqual fortran
linux unix i386 near far
NAN INFINITY NULL EOF BUFSIZ FILENAME_MAX FOPEN_MAX TMP_MAX RAND_MAX SEEK_SET SEEK_CUR SEEK_END SEEK_DATA SEEK_HOLE
HUGE HUGE_VAL HUGE_VALF HUGE_VALL SNAN SNANF SNANL MAXFLOAT DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS X_TLOSS
FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL FP_NORMAL FP_ILOGB0 FP_ILOGBNAN FP_FAST_FMA FP_FAST_FMAF FP_FAST_FMAL
FP_INT_UPWARD FP_INT_DOWNWARD FP_INT_TOWARDZERO FP_INT_TONEARESTFROMZERO FP_INT_TONEAREST
FP_LLOGB0 FP_LLOGBNAN MATH_ERRNO MATH_ERREXCEPT math_errhandling errno stdin stdout stderr P_tmpdir L_tmpnam L_ctermid
L_cuserid RENAME_NOREPLACE RENAME_EXCHANGE RENAME_WHITEOUT
M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2
isnan isinf isfinite isnormal signbit fpclassify issignaling issubnormal iszero iscanonical iseqsig
isgreater isgreaterequal isless islessequal islessgreater isunordered
wrong close_to fmod round trunc fmax fmin fma ldexp frexp modf
"""
RESERVED = frozenset([*_WORDS.split(), *HELPERS, *calls(" ".join(RULES.values()))])


def number(value: float) -> str:
    """Return a double with all its digits.

    >>> number(2.0), number(0.1), number(float("inf"))
    ('2.0', '0.1', 'INFINITY')
    """
    return repr(float(value)).replace("inf", "INFINITY").replace("nan", "NAN")


LANGUAGE = NumberLanguage(
    name="c",
    rules=RULES,
    array="double {name}[{size}];",
    large="static double {name}[{size}];",
    table="static const {type} {{name}}[{{size}}] = {{{{|}}}};",
    constant="const {type} {name} = {value};",
    variable="double {name} = {value};",
    loop="for (int {i} = 0; {i} < {n}; {i}++)",
    whole="(int){}",
    number=number,
    result="*{} = {{value}};".format,
    helper=str,
    structural=RULES_OF_LOOPS | STRUCTURAL,
    zeroed=False,
    stack=100_000,
    indent="    ",
)
NUMBERS = True  # whether its functions have numbers and flat arrays alone


def source(program: Program) -> str:
    """Return the file."""
    names: set[str] = set()
    functions = [line for f in program.functions for line in _function(f, names)]
    called = [line for lines in needed(names, HELPERS) for line in ("", *lines)]
    head = ["/*", " * The system below and its derivatives in C, written by gradcli.", " *"]
    head += [*(f" *     {line.replace('*/', '* /')}" for line in program.system), " */", "", "#include <math.h>"]
    head += ["", "static const double PI = 3.141592653589793;"] if any("PI" in line for line in called) else []
    # Its main function, compiled with -DNAME_TEST, compares with gradcli's numbers.
    tested = self_test("self_test.c", _tested, program)
    return "\n".join([*head, *called, *functions, *tested]) + "\n"


def _function(function: Function, called: set[str]) -> list[str]:
    """Return the lines of a function; what it calls is added to `called`."""
    writer = LoopWriter(LANGUAGE, function, called=called)
    written = writer.write()
    unused = [f"    (void){name};" for name, n in function.arguments.items() if n not in function.nodes]
    about = about_lines(function)
    if any("static double" in line for line in written):
        about += ["", "Its large arrays are static: only one thread may call it at a time."]
    lines = [f"/* {about[0]} */"] if len(about) == 1 else ["/*", *(f" * {line}".rstrip() for line in about), " */"]
    arguments = [f"const double *{x}" if n.shape else f"double {x}" for x, n in function.arguments.items()]
    arguments += [f"double *{name}" for name in function.results]
    head = filled(f"void {function.name}(", ")", arguments, width=88)
    pattern = pattern_lines(function, "/* {} */", "const int {name}[{size}] = {{|}};", " x ", "    ")
    tables = [*writer.tables, ""] if writer.tables else []
    return ["", *pattern, *tables, *lines, *head, "{", *unused, *written, "}"]


def _tested(f: Function, arguments: Named, expected: Named) -> list[str]:
    lines = ["    {"]
    parameters = []
    for k, (name, node) in enumerate(f.arguments.items()):
        if node.shape:
            lines += filled(f"        const double in{k}[{node.size}] = {{", "};", LANGUAGE.numbers(arguments[name]))
        parameters.append(f"in{k}" if node.shape else number(arguments[name].item()))
    for k, (name, node) in enumerate(f.results.items()):
        lines.append(f"        double out{k}[{node.size}];")
        lines += filled(f"        const double right{k}[{node.size}] = {{", "};", LANGUAGE.numbers(expected[name]))
        parameters.append(f"out{k}")
    lines += filled(f"        {f.name}(", ");", parameters)
    for k, (name, node) in enumerate(f.results.items()):
        lines += filled(
            "        wrong |= !close_to(", ");", [f'"{f.name}: {name}"', f"out{k}", f"right{k}", str(node.size)]
        )
    return [*lines, "    }"]
