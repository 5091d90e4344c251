"""Formulas of physics, statistics and learning, whose derivatives by each variable SymPy writes.

Each has 0.37 in the domain of every variable, and 30, or 0.8 if it is bounded.  Sources: Halliday, Resnick and Walker,
"Fundamentals of Physics"; Casella and Berger, "Statistical Inference"; Bishop, "Pattern Recognition and Machine
Learning"; Hull, "Options, Futures, and Other Derivatives".
"""

FORMULAS = """
m*v**2/2 + m*g*h
G*m*M/r**2
-G*m*M/r
k*q*Q/(x**2 + d**2)
k*x**2/2 + a*x**4/4
a*cos(w*t + p)
a*exp(-b*t)*cos(w*t)
v*t*sin(p) - g*t**2/2
m*c**2/sqrt(1 + (u/c)**2)
n*R*T/V
n*R*T/(V - n*b) - a*n**2/V**2
s*A*T**4
1/(exp(x/T) + 1)
1/(exp(E/(k*T)) - 1)
tanh(m*B/(k*T))
x/(exp(x) - 1)
exp(-E/(k*T))
log(1 + exp(-E/T))
V*(1 - exp(-t/(R*C)))
V/(R + r)
V**2*R/(R + r)**2
1/(2*pi*sqrt(L*C))
1/(1/a + 1/b)
R + w*L - 1/(w*C)
(w*L - 1/(w*C))**2 + R**2
sin(q/2)**2/q**2
sin(N*d)**2*exp(-d**2)
4*q*((s/r)**12 - (s/r)**6)
D*(1 - exp(-a*(r - b)))**2
q*E + q*v*B*sin(p)
q*exp(-k*r)/r
l1*cos(p) + l2*cos(p + q)
l1*sin(p)*cos(q) + l2*sin(q)
sqrt(x**2 + z**2 + 1)
log(x**2 + z**2)
x*z/(x**2 + z**2 + 1)
atan(z/x)
f*v/(v - u)
p + d*v**2/2 + d*g*h
A*sqrt(2*g*h)
h*w**3/(exp(h*w/T) - 1)
w**2*x**2/2 + b*x
exp(-(x - m)**2/(2*s**2))
-(x - m)**2/(2*s**2) - log(s**2)/2
exp(-abs(s)*t)*cos(t)
k*log(r) - r
log(r) - r*t
n*log(p) + (m - n)*log(1 - p)
-p*log(p) - (1 - p)*log(1 - p)
p*log(p/q)
-log(1 + (x - m)**2/s**2) - log(s**2)/2
(a - 1)*log(x) + (b - 1)*log(1 - x)
a*log(b) + (a - 1)*log(x) - b*x
-(v + 1)/2*log(1 + x**2/v)
exp(m + s**2/2)
(exp(s**2) - 1)*exp(2*m + s**2)
erf((x - m)/s)
x*erf(x/s) + exp(-x**2/s**2)
(y0 - w*x - b)**2
(y0 - tanh(w*x + b))**2
log(1 + exp(-t*(w*x + b)))
-t*log(1/(1 + exp(-z))) - (1 - t)*log(1 - 1/(1 + exp(-z)))
1/(1 + exp(-(w*x + b)))
tanh(w*x)*tanh(u*x)
x/(1 + exp(-b*x))
log(exp(a) + exp(b) + exp(c))
exp(a)/(exp(a) + exp(b) + exp(c))
(a - b)**2/(a**2 + b**2)
a*b/sqrt(a**2 + 1)/sqrt(b**2 + 1)
x*log(x) - x
a*x**3 + b*x**2 + c*x + d
(a*x + b)/(c*x + d)
(x**2 + 1)**5*sin(a*x)
exp(sin(a*x))
asin(x/3)
acos(a*x/4)
sqrt(1 - x**2/4)
cosh(x/a)
a*cosh(x/a) + b*sinh(x/a)
sin(x)*cos(z) - cos(x)*sin(z)
log(log(x + 3) + 2)
x**2*exp(-a*x)
S*exp(-d*t) - K*exp(-r*t)
N0*K/(N0 + (K - N0)*exp(-r*t))
a*x/(b + x)
a*x**2/(b**2 + x**2)
x*(1 - x)*r
b*S*I - g*I
c*(v - v**3/3 + w)
1/(1 + (x/a)**4)
1/(s**2 + 2*z*w*s + w**2)
k*s/(1 + t*s)
log(x)**2/a
sqrt(a**2 + b**2 - 2*a*b*cos(g))
(x - a)**2*(x - b)**2
exp(-x**2/2)*(1 + a*x)
1/(x**2 + b**2)**1.5
q/(4*pi*(x**2 + d**2)**0.5)
"""
LINES = FORMULAS.strip().splitlines()
BOUNDED = ("asin(x/3)", "acos(a*x/4)", "sqrt(1 - x**2/4)", "log(1 - p)", "log(1 - x)")
