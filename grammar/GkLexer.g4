// The tokens of gk. Syntax only, no actions.
//
// compiler/syntax/tokens.cpp stands between this lexer and GkParser.g4. It drops newlines that do not
// end a statement, turns contextual keywords (node, after, over, as, test, bench, update, type, graph,
// kernel, captured) back into IDENT where they are plain names, and gives some brackets the types under
// `tokens` below, so that the parser needs two tokens of lookahead at most.
lexer grammar GkLexer;

tokens {
  LIST_LBRACK,     // [ of a list type [T; n]
  LAMBDA_LPAREN,   // ( whose ) is followed by =>
  LAMBDA_NAME,     // a name or _ followed by =>
  LAUNCH_WITH,     // launch followed by (options)
  REBIND_LBRACE,   // { of update e { x -> x2 }
  PLACEMENT,       // pinned or host before a type
  NUMBER_ARRAY     // a long [ … ] of plain numbers, in one piece
}

LET: 'let';
VAR: 'var';
CONST: 'const';
FN: 'fn';
CAPTURED: 'captured';
KERNEL: 'kernel';
OVER: 'over';
IN: 'in';
TYPE: 'type';
GRAPH: 'graph';
NODE: 'node';
AFTER: 'after';
UPDATE: 'update';
CAPTURE: 'capture';
LAUNCH: 'launch';
FOR: 'for';
WHILE: 'while';
IF: 'if';
ELSE: 'else';
BREAK: 'break';
CONTINUE: 'continue';
RETURN: 'return';
AND: 'and';
OR: 'or';
NOT: 'not';
MUT: 'mut';
IMPORT: 'import';
AS: 'as';
PRAGMA: 'pragma';
ASSERT: 'assert';
TEST: 'test';
BENCH: 'bench';
EXPECT_ERROR: 'expect_error';
TRUE: 'true';
FALSE: 'false';
NEW: 'new';

LPAREN: '(';
RPAREN: ')';
LBRACK: '[';
RBRACK: ']';
LBRACE: '{';
RBRACE: '}';
COMMA: ',';
COLON: ':';
SEMI: ';';
ARROW: '->';
FATARROW: '=>';
PIPE: '|>';
ELLIPSIS: '...';
DOTDOT: '..';
ASSIGN_ELEMS: '.=';
ADD_ELEMS: '.+=';
SUB_ELEMS: '.-=';
MUL_ELEMS: '.*=';
DIV_ELEMS: './=';
DOT: '.';
ADD_ASSIGN: '+=';
SUB_ASSIGN: '-=';
MUL_ASSIGN: '*=';
DIV_ASSIGN: '/=';
APPROX: '~=';
EQ: '==';
NE: '!=';
LE: '<=';
GE: '>=';
SHL: '<<';
SHR: '>>';
LT: '<';
GT: '>';
ASSIGN: '=';
PLUS: '+';
MINUS: '-';
POW: '**';
STAR: '*';
FLOORDIV: '//';
SLASH: '/';
PERCENT: '%';
AT: '@';
AMP: '&';
BAR: '|';
CARET: '^';
TILDE: '~';

// Spellings of other languages, replaced (with an error) before the parser sees them.
BAD_AND: '&&';
BAD_OR: '||';
BAD_NOT: '!';

UNDERSCORE: '_';

// A number may carry a dtype suffix; which ones exist is checked when the tree is built.
FLOAT: (DIGITS '.' DIGITS EXPONENT? | '.' DIGITS EXPONENT? | DIGITS EXPONENT) SUFFIX?;
INT: (DIGITS | '0' [xX] [0-9a-fA-F_]+ | '0' [bBoO] [0-9_]+) SUFFIX?;

// An f-string's expressions may hold strings of their own and braces up to two deep.
FSTRING: 'f"' (FTEXT | '{{' | '}}' | FEXPR)* '"';
STRING: '"' (~["\\\r\n] | ESCAPE)* '"';
// Shorter than the two above whenever those match.
UNTERMINATED: 'f'? '"' (~["\\\r\n] | ESCAPE)* '\\'?;

IDENT: [\p{L}_] [\p{L}\p{M}\p{Nd}_]*;

DOC: '##' ~[\r\n]*;
COMMENT: '#' ~[\r\n]* -> skip;
SPACE: [ \t\f\u00A0]+ -> skip;
NEWLINE: '\r'? '\n' | '\r';
UNKNOWN: .;

fragment DIGITS: [0-9] [0-9_]*;
fragment EXPONENT: [eE] [+-]? [0-9] [0-9_]*;
fragment SUFFIX: [a-zA-Z] [a-zA-Z0-9_]*;
fragment ESCAPE: '\\' ~[\r\n];
fragment FTEXT: ~["\\{}\r\n] | ESCAPE;
fragment FEXPR: '{' (~["{}\r\n] | QUOTED | FEXPR1)* '}';
fragment FEXPR1: '{' (~["{}\r\n] | QUOTED | FEXPR2)* '}';
fragment FEXPR2: '{' (~["{}\r\n] | QUOTED)* '}';
fragment QUOTED: '"' (~["\\\r\n] | ESCAPE)* '"';
