//! Sample contents: tables and code as sites write them.

pub struct Content {
    pub name: &'static str,
    pub html: &'static str,
    pub rows: &'static [&'static [&'static str]],
    pub code: &'static str,
}

pub const CONTENTS: &[Content] = &[
    Content {
        name: "a table with a head",
        html: "<table><thead><tr><th>Name</th><th>Size</th></tr></thead><tbody><tr><td>apple</td><td>7 cm</td></tr>\
               <tr><td>pear</td><td>9 cm</td></tr></tbody></table>",
        rows: &[&["Name", "Size"], &["apple", "7 cm"], &["pear", "9 cm"]],
        code: "",
    },
    Content {
        name: "a table without a head",
        html: "<table border=1><tr><td>Weight<td>1.2 kg<tr><td>Height<td>30 cm<tr><td>Colour<td>dark green</table>",
        rows: &[&["Weight", "1.2 kg"], &["Height", "30 cm"], &["Colour", "dark green"]],
        code: "",
    },
    Content {
        name: "a table of links",
        html: "<div class='table-responsive'><table class='sortable'><tr><th>Option</th><th>See</th></tr>\
               <tr><td><a href='/a'>alpha</a></td><td><a href='/a#x'>alpha notes</a></td></tr>\
               <tr><td><a href='/b'>beta</a></td><td><a href='/b#x'>beta notes</a></td></tr></table></div>",
        rows: &[&["Option", "See"]],
        code: "",
    },
    Content {
        name: "a table with an empty cell and a caption",
        html: "<table><caption>Prices</caption><tr><th>Item</th><th>Old</th><th>New</th></tr>\
               <tr><td>Bread</td><td></td><td>2.50</td></tr><tr><td>Milk</td><td>1.10</td><td>1.20</td></tr></table>",
        rows: &[&["Item", "Old", "New"], &["Bread", "", "2.50"], &["Milk", "1.10", "1.20"]],
        code: "",
    },
    Content {
        name: "plain code",
        html: "<pre>fn main() {\n    let a = 1 &lt; 2;\n\n    print(a);\n}\n</pre>",
        rows: &[],
        code: "fn main() {\n    let a = 1 < 2;\n\n    print(a);\n}",
    },
    Content {
        name: "code with colours",
        html: "<div class='highlight-python notranslate'><div class='highlight'><pre><span></span><span class='k'>def</span> \
               <span class='nf'>run</span><span class='p'>():</span>\n    <span class='k'>return</span> <span class='mi'>1</span>\n</pre></div></div>",
        rows: &[],
        code: "def run():\n    return 1",
    },
    Content {
        name: "code with a gutter of numbers",
        html: "<table class='highlighttable'><tr><td class='linenos'><div class='linenodiv'><pre>1\n2</pre></div></td>\
               <td class='code'><div><pre>alpha = 1\nbeta = 2\n</pre></div></td></tr></table>",
        rows: &[],
        code: "alpha = 1\nbeta = 2",
    },
    Content {
        name: "code whose lines are elements, with a button",
        html: "<pre class='language-js'><code><div class='line'>const a = 1;</div><div class='line'>  go(a);</div></code>\
               <button>Copy</button></pre>",
        rows: &[],
        code: "const a = 1;\n  go(a);",
    },
    Content {
        name: "code in a list",
        html: "<ol><li>First, install:<pre><code class='language-sh'>apt update\napt install thing</code></pre></li><li>Then start it.</li></ol>",
        rows: &[],
        code: "apt update\napt install thing",
    },
    Content {
        name: "code with breaks, and a table after it",
        html: "<pre>one<br>  two<br/>three</pre><p>And as numbers:</p><table><tr><th>n</th><th>square</th></tr><tr><td>3</td><td>9</td></tr></table>",
        rows: &[&["n", "square"], &["3", "9"]],
        code: "one\n  two\nthree",
    },
];
