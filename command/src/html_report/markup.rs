//! Writes HTML and escapes all text in it.

use std::fmt::Write as _;

/// Escapes text for HTML, and makes characters that change the text direction visible.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in output::lines(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Writes a paragraph.
pub(super) fn paragraph(html: &mut String, text: &str) {
    let _ = writeln!(html, "<p>{}</p>", escape(text));
}

/// Writes a table; the first cell of a row is its header. Writes nothing if there are no rows.
pub(super) fn table<const N: usize>(
    html: &mut String,
    caption: &str,
    columns: [&str; N],
    rows: &[[String; N]],
) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(html, "<div class=\"scroll\"><table>\n<caption>{}</caption>", escape(caption));
    html.push_str("<thead><tr>");
    for column in columns {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(column));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let (open, close) = if index == 0 { ("<th scope=\"row\">", "</th>") } else { ("<td>", "</td>") };
            let _ = write!(html, "{open}{}{close}", escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
}
