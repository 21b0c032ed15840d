//! Turns TypeScript into JavaScript by writing spaces over its types, so that every position stays. TypeScript that has
//! no such form (enums, namespaces, parameter properties) is refused.

mod blanked_text;

use crate::message::ReportedError;
use blanked_text::BlankedText;
use oxc_allocator::Allocator;
use oxc_ast::ast;
use oxc_ast_visit::{Visit, walk};
use oxc_parser::config::TokensParserConfig;
use oxc_parser::{Kind, ParseOptions, Parser};
use oxc_span::{GetSpan, SourceType, Span};
use oxc_syntax::scope::ScopeFlags;

/// Marks of members that only the type checker reads.
const MODIFIERS: [Kind; 7] = [
    Kind::Public,
    Kind::Private,
    Kind::Protected,
    Kind::Readonly,
    Kind::Override,
    Kind::Abstract,
    Kind::Declare,
];

/// Removes the types of a program.
pub fn strip_types(source: &str) -> Result<String, ReportedError> {
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parser = Parser::new(&allocator, source, SourceType::ts().with_module(true));
    let parsed = parser.with_options(options).with_config(TokensParserConfig).parse();
    if let Some(error) = parsed.diagnostics.first() {
        let offset = error.labels.first().map(|label| label.offset());
        let help = error.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        return Err(syntax_error(source, offset, format!("{}{help}", error.message)));
    }
    let text = BlankedText::new(source, &parsed.tokens);
    let mut eraser = TypeEraser { text, refused: None };
    eraser.visit_program(&parsed.program);
    match eraser.refused {
        Some((span, what)) => Err(syntax_error(source, Some(span.start), what.to_owned())),
        None => Ok(eraser.text.finish()),
    }
}

fn syntax_error(source: &str, offset: Option<u32>, message: String) -> ReportedError {
    let position = offset.and_then(|offset| source.get(..usize::try_from(offset).ok()?)).map(|before| {
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    });
    let (line, column) = position.unzip();
    ReportedError::Syntax { message, line, column }
}

/// Finds the types.
struct TypeEraser<'s> {
    text: BlankedText<'s>,
    /// The first construct that has no plain form.
    refused: Option<(Span, &'static str)>,
}

impl TypeEraser<'_> {
    fn refuse(&mut self, span: Span, why: &'static str) {
        self.refused.get_or_insert((span, why));
    }

    /// Blanks the marks before the name of a class member.
    fn erase_modifiers(&mut self, member: Span, key: Span) {
        for (index, token) in self.text.tokens_in(Span::new(member.start, key.start)).iter().enumerate() {
            if MODIFIERS.contains(&token.kind()) {
                // Otherwise a name in brackets would continue the member before.
                self.text.blank(token.span(), if index == 0 { b';' } else { b' ' });
            }
        }
    }

    /// Blanks `?` or `!` after a name; it becomes `first`.
    fn erase_mark(&mut self, after: u32, end: u32, first: u8) {
        let marks = self.text.tokens_in(Span::new(after, end)).iter();
        let mark = marks.take(2).find(|token| matches!(token.kind(), Kind::Question | Kind::Bang));
        if let Some(span) = mark.map(|token| token.span()) {
            self.text.blank(span, first);
        }
    }
}

impl<'a> Visit<'a> for TypeEraser<'_> {
    fn visit_ts_type_annotation(&mut self, it: &ast::TSTypeAnnotation<'a>) {
        self.text.blank(it.span, b' ');
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &ast::TSTypeParameterDeclaration<'a>) {
        self.text.blank(it.span, b' ');
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &ast::TSTypeParameterInstantiation<'a>) {
        self.text.blank(it.span, b' ');
    }

    fn visit_ts_interface_declaration(&mut self, it: &ast::TSInterfaceDeclaration<'a>) {
        self.text.blank(it.span, b';');
    }

    fn visit_ts_type_alias_declaration(&mut self, it: &ast::TSTypeAliasDeclaration<'a>) {
        self.text.blank(it.span, b';');
    }

    fn visit_ts_global_declaration(&mut self, it: &ast::TSGlobalDeclaration<'a>) {
        self.text.blank(it.span, b';');
    }

    fn visit_ts_index_signature(&mut self, it: &ast::TSIndexSignature<'a>) {
        self.text.blank(it.span, b';');
    }

    fn visit_ts_as_expression(&mut self, it: &ast::TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.text.blank_suffix(Span::new(it.expression.span().end, it.span.end));
    }

    fn visit_ts_satisfies_expression(&mut self, it: &ast::TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.text.blank_suffix(Span::new(it.expression.span().end, it.span.end));
    }

    fn visit_ts_type_assertion(&mut self, it: &ast::TSTypeAssertion<'a>) {
        // Without it `x => <T>{ … }` has a body, and `return <⏎T>x` ends early.
        self.refuse(it.span, "`<T>value` is not supported; use `value as T`");
    }

    fn visit_ts_non_null_expression(&mut self, it: &ast::TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.text.blank(Span::new(it.span.end.saturating_sub(1), it.span.end), b' ');
    }

    fn visit_variable_declaration(&mut self, it: &ast::VariableDeclaration<'a>) {
        if it.declare {
            return self.text.blank(it.span, b';');
        }
        walk::walk_variable_declaration(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &ast::VariableDeclarator<'a>) {
        if it.definite {
            self.erase_mark(it.id.span().end, it.span.end, b' ');
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_function(&mut self, it: &ast::Function<'a>, flags: ScopeFlags) {
        if it.declare || it.body.is_none() {
            return self.text.blank(it.span, b';');
        }
        if let Some(this) = &it.this_param {
            let comma = self.text.token_after(this.span.end).filter(|token| token.kind() == Kind::Comma);
            self.text
                .blank(Span::new(this.span.start, comma.map_or(this.span.end, |comma| comma.end())), b' ');
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_formal_parameter(&mut self, it: &ast::FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            let why =
                "parameter properties are not supported; declare the field and assign it in the constructor";
            self.refuse(it.span, why);
        }
        if it.optional {
            self.erase_mark(it.pattern.span().end, it.span.end, b' ');
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_arrow_function_expression(&mut self, it: &ast::ArrowFunctionExpression<'a>) {
        walk::walk_arrow_function_expression(self, it);
        if let Some(parameters) = &it.type_parameters {
            self.text.open_at_type_parameters(parameters.span);
        }
        if let Some(of) = &it.return_type {
            self.text.close_before_arrow(it.params.span, of.span);
        }
    }

    fn visit_class(&mut self, it: &ast::Class<'a>) {
        if it.declare {
            return self.text.blank(it.span, b';');
        }
        let head = self.text.tokens_in(Span::new(it.span.start, it.body.span.start));
        if it.r#abstract
            && let Some(mark) = head.iter().find(|token| token.kind() == Kind::Abstract)
        {
            self.text.blank(mark.span(), b' ');
        }
        if let Some((first, last)) = it.implements.first().zip(it.implements.last()) {
            let before = Span::new(it.span.start, first.span.start);
            let word = self.text.tokens_in(before).iter().rfind(|token| token.kind() == Kind::Implements);
            let start = word.map_or(first.span.start, |word| word.start());
            self.text.blank(Span::new(start, last.span.end), b' ');
        }
        walk::walk_class(self, it);
    }

    fn visit_property_definition(&mut self, it: &ast::PropertyDefinition<'a>) {
        if it.declare || it.r#type == ast::PropertyDefinitionType::TSAbstractPropertyDefinition {
            return self.text.blank(it.span, b';');
        }
        self.erase_modifiers(it.span, it.key.span());
        // Otherwise a name such as `get` would be a mark of the next member.
        let first = if it.value.is_none() { b';' } else { b' ' };
        if it.optional || it.definite {
            self.erase_mark(it.key.span().end, it.span.end, first);
        }
        walk::walk_property_definition(self, it);
        if let Some(of) = &it.type_annotation {
            self.text.blank(of.span, first);
        }
    }

    fn visit_method_definition(&mut self, it: &ast::MethodDefinition<'a>) {
        if it.value.body.is_none() {
            return self.text.blank(it.span, b';');
        }
        self.erase_modifiers(it.span, it.key.span());
        if it.optional {
            self.erase_mark(it.key.span().end, it.value.params.span.start, b' ');
        }
        walk::walk_method_definition(self, it);
    }

    fn visit_ts_enum_declaration(&mut self, it: &ast::TSEnumDeclaration<'a>) {
        self.refuse(it.span, "`enum` is not supported; use `const Name = { … } as const`");
    }

    fn visit_ts_namespace_declaration(&mut self, it: &ast::TSNamespaceDeclaration<'a>) {
        self.refuse(it.span, "`namespace` is not supported; use an object");
    }

    fn visit_ts_external_module_declaration(&mut self, it: &ast::TSExternalModuleDeclaration<'a>) {
        self.text.blank(it.span, b';');
    }

    fn visit_decorator(&mut self, it: &ast::Decorator<'a>) {
        self.refuse(it.span, "decorators are not supported; call the function");
    }

    fn visit_module_declaration(&mut self, it: &ast::ModuleDeclaration<'a>) {
        let why = "`import` and `export` are not available; call tools as `await tools.name({ … })`, and `return` the result";
        self.refuse(it.span(), why);
    }

    fn visit_ts_import_equals_declaration(&mut self, it: &ast::TSImportEqualsDeclaration<'a>) {
        self.refuse(it.span, "`import` is not available; call tools as `await tools.name({ … })`");
    }
}
