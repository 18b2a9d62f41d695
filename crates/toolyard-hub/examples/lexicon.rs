//! Builds a lexicon from a CC-CEDICT text and prints what the words of texts mean: `lexicon INPUT OUTPUT TEXT…`.

use std::{error::Error, path::Path, time::Instant};

use toolyard_hub::search::lexicon::{Lexicon as _, Lexicons, Origin, StoredLexicon, build, entries};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (input, output) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let started = Instant::now();
    let text = std::fs::read_to_string(input)?;
    let built = build(entries(&text), &Origin { language: "zh".to_owned(), ..Origin::default() })?;
    eprintln!(
        "built {} words of {} entries, {} bytes, {:?}",
        built.words,
        built.entries,
        built.bytes.len(),
        started.elapsed()
    );
    std::fs::write(&output, &built.bytes)?;
    let started = Instant::now();
    let stored = StoredLexicon::open(Path::new(&output))?;
    eprintln!("opened {:?}", started.elapsed());
    for _ in 0..5 {
        let started = Instant::now();
        let bytes = std::fs::read(&output)?;
        let read = started.elapsed();
        StoredLexicon::from_bytes(bytes)?;
        eprintln!("again {read:?} {:?}", started.elapsed());
    }
    let lexicons = Lexicons::with_lexicons(vec![stored]);
    let started = Instant::now();
    lexicons.meanings("删除");
    eprintln!("first {:?}", started.elapsed());
    for text in words {
        let started = Instant::now();
        let meanings = lexicons.meanings(&text);
        println!("{text}   ({:?})", started.elapsed());
        for meaning in meanings {
            let glosses: Vec<String> = meaning.glosses.iter().map(|gloss| gloss.join(" ")).collect();
            println!("    {}  {}", text.get(meaning.word).unwrap_or_default(), glosses.join("; "));
        }
    }
    Ok(())
}
