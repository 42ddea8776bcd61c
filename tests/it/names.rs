//! Names that need care.

use pgveil_tests::on_every_version;

use crate::scenario::Scenario;

on_every_version! {
    /// N01, N02, N04: quotes, dots, blanks, line breaks, backslashes, wildcards, reserved words, 63 bytes.
    fn awkward_names(major) {
        let long = "x".repeat(63);
        let tables = [
            r#""Q_"" . S"."T "" .""#.to_owned(),
            r#"public."""x""""#.to_owned(),
            "public.\"line\nbreak\"".to_owned(),
            r#"public."a\b""#.to_owned(),
            r#"public."a_b""#.to_owned(),
            r#"public."a%b""#.to_owned(),
            r#"public."select""#.to_owned(),
            format!("public.\"{long}\""),
            "public.\"bıgınt\"".to_owned(),
        ];
        let create = |table: &String| format!("create table {table} (\"c\"\" x\" int primary key, \"user\" text, \"Ü\" int)");
        let schema = format!("create schema \"Q_\"\" . S\"; {}", tables.iter().map(create).collect::<Vec<_>>().join("; "));
        let each = |sql: &str| tables.iter().map(|table| sql.replace("TABLE", table)).collect::<Vec<_>>().join("; ");
        let before = each("insert into TABLE values (1, 'a', 1), (2, 'b', 2)");
        let changes = [each("insert into TABLE values (3, 'c', 3)"), each("update TABLE set \"user\" = 'd' where \"c\"\" x\" = 1"), each("delete from TABLE where \"c\"\" x\" = 2"), each("truncate TABLE")];
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
        Scenario { schema: &schema, before: &before, changes: &changes, tables: &tables }.check(major, "awkward_names")?;
    }
}
