// The grammar of gk. Syntax only, no actions; compiler/syntax/build.cpp turns the tree into the AST.
//
// Every statement ends in NEWLINE or SEMI: compiler/syntax/tokens.cpp has dropped the newlines that do
// not count and added one before a } that closes a block, after a } followed by a statement, and at the
// end of the text.
parser grammar GkParser;

options {
  tokenVocab = GkLexer;
}

file: line* EOF;

/// The text between { and } of an f-string.
fragmentExpr: expr NEWLINE? EOF;

line: stmt? end = (NEWLINE | SEMI);

block: LBRACE line* RBRACE;

stmt
  : kind = (LET | VAR | CONST) binding (COMMA binding)*                        # LetStmt
  | CAPTURED? FN IDENT LPAREN params? RPAREN (ARROW type)? (ASSIGN expr | block) # FnStmt
  | KERNEL IDENT LPAREN params? RPAREN OVER indexNames IN expr block           # KernelStmt
  | TYPE IDENT ASSIGN type                                                     # TypeStmt
  | GRAPH IDENT LBRACE nodeLine* RBRACE                                        # GraphStmt
  | UPDATE expr (block | REBIND_LBRACE rebindItem* RBRACE)                     # UpdateStmt
  | FOR name IN expr block                                                     # ForStmt
  | WHILE expr block                                                           # WhileStmt
  | BREAK                                                                      # BreakStmt
  | CONTINUE                                                                   # ContinueStmt
  | RETURN expr?                                                               # ReturnStmt
  | IMPORT STRING (AS IDENT)?                                                  # ImportStmt
  | PRAGMA IDENT IDENT?                                                        # PragmaStmt
  | ASSERT expr (COMMA arg)*                                                   # AssertStmt
  | kind = (TEST | BENCH) STRING block                                         # TestStmt
  | EXPECT_ERROR IDENT block                                                   # ExpectErrorStmt
  | expr (assignOp expr)?                                                      # ExprStmt
  ;

assignOp
  : ASSIGN | ADD_ASSIGN | SUB_ASSIGN | MUL_ASSIGN | DIV_ASSIGN
  | ASSIGN_ELEMS | ADD_ELEMS | SUB_ELEMS | MUL_ELEMS | DIV_ELEMS
  ;

binding: IDENT (COLON type)? (ASSIGN expr)?;

params: param (COMMA param)* COMMA?;
param: MUT? name (COLON type)? (ASSIGN expr)?;
name: IDENT | UNDERSCORE;
indexNames: IDENT | LPAREN IDENT (COMMA IDENT)* COMMA? RPAREN;

nodeLine: node? (NEWLINE | SEMI);
node: NODE IDENT (AFTER LPAREN IDENT (COMMA IDENT)* COMMA? RPAREN)? block;

rebindItem: rebind? (COMMA | NEWLINE | SEMI);
rebind: expr ARROW expr;

type: PLACEMENT? baseType;
baseType
  : IDENT (DOT IDENT)? (LBRACK (expr (COMMA expr)* COMMA?)? RBRACK)?           # NamedType
  | LIST_LBRACK type SEMI expr RBRACK                                          # ListType
  | LBRACE (field ((COMMA | NEWLINE | SEMI) field?)*)? RBRACE                  # RecordType
  | LPAREN type (COMMA type?)* RPAREN                                          # TupleType
  ;
field: IDENT COLON type;

// Loosest last. Comparisons do not chain; the tree builder says so.
expr
  : expr LPAREN args? RPAREN                                                   # CallExpr
  | expr LBRACK indices? RBRACK                                                # IndexExpr
  | expr DOT IDENT                                                             # FieldExpr
  | (LAUNCH | LAUNCH_WITH LPAREN args? RPAREN) expr                            # LaunchExpr
  | <assoc = right> expr op = POW expr                                         # BinaryExpr
  | op = (MINUS | PLUS | TILDE) expr                                           # UnaryExpr
  | expr op = (STAR | SLASH | FLOORDIV | PERCENT | AT) expr                    # BinaryExpr
  | expr op = (PLUS | MINUS) expr                                              # BinaryExpr
  | expr DOTDOT expr                                                           # RangeExpr
  | expr op = (SHL | SHR) expr                                                 # BinaryExpr
  | expr op = AMP expr                                                         # BinaryExpr
  | expr op = CARET expr                                                       # BinaryExpr
  | expr op = BAR expr                                                         # BinaryExpr
  | expr op = (EQ | NE | LT | LE | GT | GE | APPROX) expr                      # BinaryExpr
  | op = NOT expr                                                              # UnaryExpr
  | expr op = AND expr                                                         # BinaryExpr
  | expr op = OR expr                                                          # BinaryExpr
  | expr PIPE expr                                                             # PipeExpr
  | (LAMBDA_NAME | LAMBDA_LPAREN params? RPAREN) FATARROW expr                 # LambdaExpr
  | IDENT                                                                      # NameExpr
  | UNDERSCORE                                                                 # WildcardExpr
  | (INT | FLOAT)                                                              # NumberExpr
  | NUMBER_ARRAY                                                               # NumberArrayExpr
  | (TRUE | FALSE)                                                             # BoolExpr
  | STRING                                                                     # StringExpr
  | FSTRING                                                                    # FStringExpr
  | LPAREN (expr (COMMA expr)* COMMA?)? RPAREN                                 # ParenExpr
  | LBRACK (expr (COMMA expr)* COMMA?)? RBRACK                                 # ArrayExpr
  | LIST_LBRACK type SEMI expr RBRACK                                          # ListTypeExpr
  | IF expr block (ELSE IF expr block)* (ELSE block)?                          # IfExpr
  | CAPTURE block                                                              # CaptureExpr
  | block                                                                      # BlockExpr
  ;

args: arg (COMMA arg)* COMMA?;
arg: (IDENT ASSIGN | MUT)? expr;
indices: index (COMMA index)* COMMA?;
index: ELLIPSIS | NEW | expr slice? | slice;
slice: COLON last = expr? (COLON step = expr?)?;
