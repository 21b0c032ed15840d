//! Handwritten PDF files.

/// A file of these objects, the first of which is the catalogue, with a cross-reference table.
pub fn file(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut out = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.extend(format!("{} 0 obj\n", at + 1).bytes());
        out.extend(object);
        out.extend(b"\nendobj\n");
    }
    let table = out.len();
    out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for place in places {
        out.extend(format!("{place:010} 00000 n \n").bytes());
    }
    let size = objects.len() + 1;
    out.extend(
        format!("trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{table}\n%%EOF\n").bytes(),
    );
    out
}

pub fn stream(about: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("<< {about} /Length {} >>\nstream\n", bytes.len()).into_bytes();
    out.extend(bytes);
    out.extend(b"\nendstream");
    out
}

/// A page with a line for each line of the text, in a standard font.
fn content(text: &str) -> Vec<u8> {
    let shown: String = text.lines().map(|line| format!("({line}) Tj 0 -14 Td ")).collect();
    format!("BT /F1 12 Tf 72 720 Td {shown}ET").into_bytes()
}

/// Objects of a file with these contents as pages, each compressed by `pack`.
fn objects(contents: &[Vec<u8>], pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<Vec<u8>> {
    let kids: String = (0..contents.len()).map(|at| format!("{} 0 R ", 4 + 2 * at)).collect();
    let mut all: Vec<Vec<u8>> = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} /MediaBox [0 0 612 792] >>", contents.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ]
    .map(String::into_bytes)
    .into();
    for (at, content) in contents.iter().enumerate() {
        let page = format!(
            "<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            5 + 2 * at
        );
        all.push(page.into_bytes());
        all.push(pack(content));
    }
    all
}

pub fn plain(bytes: &[u8]) -> Vec<u8> {
    stream("", bytes)
}

pub fn deflated(bytes: &[u8]) -> Vec<u8> {
    stream("/Filter /FlateDecode", &stored(bytes))
}

/// A file with these pages.
pub fn with_pages(texts: &[&str], pack: impl Fn(&[u8]) -> Vec<u8>, trailer: &str) -> Vec<u8> {
    let contents: Vec<Vec<u8>> = texts.iter().map(|text| content(text)).collect();
    file(&objects(&contents, pack), trailer)
}

/// A file with these content streams as pages.
pub fn from_commands(commands: &[&[u8]]) -> Vec<u8> {
    file(&objects(&commands.iter().map(|one| one.to_vec()).collect::<Vec<_>>(), plain), "")
}

/// A page whose compressed content expands to this many bytes.
pub fn bomb(bytes: usize) -> Vec<u8> {
    let zeros = zeros(bytes);
    file(&objects(&[Vec::new()], |_| stream("/Filter /FlateDecode", &zeros)), "")
}

/// A page that draws a form that draws ten forms, and so on.
pub fn billion_laughs(depth: usize) -> Vec<u8> {
    let mut all = objects(&[b"/X Do".to_vec()], plain);
    let first = all.len() + 1;
    all[3] = format!(
        "<< /Type /Page /Parent 2 0 R /Resources << /XObject << /X {first} 0 R >> >> /Contents 5 0 R >>"
    )
    .into_bytes();
    for at in 0..depth {
        let next = first + at + 1;
        let about = format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X {next} 0 R >> >>"
        );
        all.push(stream(&about, "/X Do ".repeat(10).as_bytes()));
    }
    all.push(stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9]", &b"0 0 1 1 re f ".repeat(100)));
    file(&all, "")
}

/// zlib stream of stored blocks.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let chunks: Vec<&[u8]> = bytes.chunks(65_535).collect();
    for (at, chunk) in chunks.iter().enumerate() {
        out.push(u8::from(at + 1 == chunks.len()));
        let length = chunk.len() as u16;
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(*chunk);
    }
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    out.extend((high << 16 | low).to_be_bytes());
    out
}

/// zlib stream of this many zeros: one, then repeated matches of length 258.
fn zeros(count: usize) -> Vec<u8> {
    let again = [1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0];
    let mut bits: Vec<u8> = vec![1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0];
    bits.extend(again.repeat(9));
    let packed = |bits: &[u8]| bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | bit << at);
    let bytes: Vec<u8> = bits.chunks(8).map(packed).collect();
    // Eight of them fill thirteen bytes, whatever bit the first starts at.
    let (begin, eight) = bytes.split_at(2);
    let mut out = vec![0x78, 0x9c];
    out.extend(begin);
    out.extend(eight[..13].repeat(count / 258 / 8));
    out
}
