"""Forty systems from textbooks, each with a right claim and a wrong one: physics, statistics, learning, control.

A line has the output, its formula, the variable, the derivative by it, and a mistake that people make; arrays have
their shapes behind their names.
Sources: Halliday, Resnick and Walker, "Fundamentals of Physics"; Bishop, "Pattern Recognition and Machine Learning";
Casella and Berger, "Statistical Inference"; Åström and Murray, "Feedback Systems".
"""

TABLE = """
gravity          | m1 m2 r          | 6.674e-11*m1*m2/r**2                     | r  | -2*6.674e-11*m1*m2/r**3                   | 2*6.674e-11*m1*m2/r**3
coulomb          | p q r            | 8.988e9*p*q/r**2                         | q  | 8.988e9*p/r**2                            | 8.988e9*p/r
kinetic          | m u              | m*u**2/2                                 | u  | m*u                                       | m*u/2
lorentz          | m u              | m*299792458**2/sqrt(1 - (u/299792458)**2) | u | m*u/(1 - (u/299792458)**2)**1.5           | m*u/sqrt(1 - (u/299792458)**2)
spring           | k x              | k*x**2/2                                 | x  | k*x                                       | 2*k*x
pendulum         | l g              | 2*pi*sqrt(l/g)                           | l  | pi/sqrt(l*g)                              | 2*pi/sqrt(l*g)
lens             | a b              | 1/(1/a + 1/b)                            | a  | b**2/(a + b)**2                           | b/(a + b)
gas              | n T V            | 8.314*n*T/V                              | V  | -8.314*n*T/V**2                           | -8.314*n*T/V
waals            | n T V            | 8.314*n*T/(V - 0.1*n) - 0.3*n**2/V**2    | T  | 8.314*n/(V - 0.1*n)                       | 8.314*n/V
radiation        | A T              | 5.670e-8*A*T**4                          | T  | 4*5.670e-8*A*T**3                         | 5.670e-8*A*T**3
boltzmann        | E T              | exp(-E/(1.381e-23*T))                    | E  | -exp(-E/(1.381e-23*T))/(1.381e-23*T)      | exp(-E/(1.381e-23*T))/(1.381e-23*T)
capacitor        | C U              | C*U**2/2                                 | C  | U**2/2                                    | U**2
charging         | U R C            | U*(1 - exp(-1e-3/(R*C)))                 | U  | 1 - exp(-1e-3/(R*C))                      | exp(-1e-3/(R*C))
resonance        | L C              | 1/(2*pi*sqrt(L*C))                       | L  | -1/(4*pi*L*sqrt(L*C))                     | 1/(4*pi*L*sqrt(L*C))
diode            | U I              | I*(exp(U/0.02585) - 1)                   | U  | I*exp(U/0.02585)/0.02585                  | I*exp(U/0.02585)
doppler          | f u              | f*343/(343 - u)                          | u  | 343*f/(343 - u)**2                        | -343*f/(343 - u)**2
drag             | d u              | d*u*abs(u)                               | u  | 2*d*abs(u)                                | d*abs(u)
photon           | w                | 6.626e-34*2.998e8/w                      | w  | -6.626e-34*2.998e8/w**2                   | -6.626e-34*2.998e8/w
friction         | m n              | minimum(m, 0.4*n)*3                      | m  | where(m < 0.4*n, 3, 0)                    | 3
torque           | a:3 b:3          | sum(a*b)                                 | a  | b                                         | a
gaussian         | x m s            | -(x - m)**2/(2*s**2) - log(abs(s))       | m  | (x - m)/s**2                              | -(x - m)/s**2
deviation        | x m s            | -(x - m)**2/(2*s**2) - log(abs(s))       | s  | (x - m)**2/s**3 - 1/s                     | (x - m)**2/s**3
poisson          | k r              | k*log(r) - r                             | r  | k/r - 1                                   | k/r
exponential      | t r              | log(r) - r*t                             | r  | 1/r - t                                   | 1/r
variance         | x:4              | var(x)                                   | x  | 2*(x - mean(x))/3                         | 2*(x - mean(x))/4
mean             | x:4              | mean(x**2)                               | x  | x/2                                       | 2*x
cauchy           | x m              | -log(1 + (x - m)**2)                     | m  | 2*(x - m)/(1 + (x - m)**2)                | (x - m)/(1 + (x - m)**2)
entropy          | p                | -p*log(p) - (1 - p)*log(1 - p)           | p  | log((1 - p)/p)                            | -log(p) - 1
squares          | X:3x2 w:2 t:3    | sum((X@w - t)**2)/2                      | w  | X.T@(X@w - t)                             | 2*X.T@(X@w - t)
ridge            | w:3 t:3          | sum((w - t)**2) + 0.1*sum(w**2)          | w  | 2*(w - t) + 0.2*w                         | 2*(w - t)
logistic         | z t              | -t*log(sigmoid(z)) - (1 - t)*log(1 - sigmoid(z)) | z | sigmoid(z) - t                     | t - sigmoid(z)
crossentropy     | z:3              | logsumexp(z) - z[0]                      | z  | softmax(z) - [1, 0, 0]                    | softmax(z)
huber            | x                | where(abs(x) < 1, x**2/2, abs(x) - 0.5)  | x  | clamp(x, -1, 1)                           | x
neuron           | w x b            | tanh(w*x + b)                            | w  | x*(1 - tanh(w*x + b)**2)                  | 1 - tanh(w*x + b)**2
relu             | w x              | relu(w*x)**2                             | w  | 2*x*relu(w*x)                             | 2*relu(w*x)
hinge            | w:2 x:2          | relu(1 - sum(w*x))                       | w  | where(sum(w*x) < 1, -x, 0*x)              | -x
quadratic        | P:2x2 x:2        | x@P@x                                    | x  | (P + P.T)@x                               | 2*P@x
lyapunov         | A:2x2 x:2        | sum((A@x)**2)                            | x  | 2*A.T@(A@x)                               | 2*A@(A@x)
gain             | s k t            | k*s/(1 + t*s)                            | s  | k/(1 + t*s)**2                            | k/(1 + t*s)
decay            | a t              | exp(-a*t)*cos(3*t)                       | t  | -a*exp(-a*t)*cos(3*t) - 3*exp(-a*t)*sin(3*t) | -a*exp(-a*t)*cos(3*t)
"""  # noqa: E501  # a line is a row

SYSTEMS = [[cell.strip() for cell in line.split("|")] for line in TABLE.strip().splitlines()]
