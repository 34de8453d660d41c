//! A panel of the page: what it shows at a glance, and the same as tables.

/// A panel.
pub(super) struct Panel {
    /// Its name in the page, of small letters.
    pub id: &'static str,
    pub title: &'static str,
    /// Units and times, behind the title.
    pub note: &'static str,
    /// HTML that is always seen.
    pub body: String,
    /// HTML that is seen on demand.
    pub tables: String,
}

impl Panel {
    /// Returns the panel. Its two changing parts have names, by which the script replaces them.
    pub(super) fn html(&self) -> String {
        let Panel { id, title, note, body, tables } = self;
        format!(
            "<section class=\"panel\" aria-labelledby=\"{id}\">\
             <h2 id=\"{id}\">{title} <small>{note}</small></h2>\
             <div class=\"body\" id=\"{id}-now\" data-live>{body}</div>\
             <details><summary>Table<span class=\"unseen\"> of {title}</span></summary>\
             <div id=\"{id}-table\" data-live>{tables}</div></details></section>\n"
        )
    }
}
