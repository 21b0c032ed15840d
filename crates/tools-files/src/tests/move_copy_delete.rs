//! `fs_mkdir`, `fs_delete`, `fs_move`, `fs_copy`.

use super::*;

#[tokio::test]
async fn folders_are_made() {
    let desk = FilesFixture::new(&[("file", b"x")]);
    assert_eq!(desk.call("fs_mkdir", json!({"path": "a/b/c"})).await["created"], true);
    assert_eq!(desk.call("fs_mkdir", json!({"path": "a/b/c"})).await["created"], false);
    assert_eq!(desk.fails("fs_mkdir", json!({"path": "a/b", "exist_ok": false})).await.kind, Kind::Conflict);
    assert_eq!(desk.fails("fs_mkdir", json!({"path": "file"})).await.kind, Kind::Conflict);
    let error = desk.fails("fs_mkdir", json!({"path": "x/y", "parents": false})).await;
    assert_eq!(error.kind, Kind::NotFound, "{error}");
}

#[tokio::test]
async fn deleting_says_what_is_gone() {
    let desk = FilesFixture::new(&[("f", b"x"), ("full/a", b"a"), ("full/b/c", b"c")]);
    std::fs::create_dir(desk.path("empty")).unwrap();
    std::os::unix::fs::symlink("full", desk.path("link")).unwrap();
    let answer = desk.call("fs_delete", json!({"path": "f"})).await;
    assert_eq!((&answer["removed"], &answer["count"]), (&json!(true), &json!(1)));
    assert!(answer["warning"].as_str().unwrap().contains("Deleted `f`; fs_undo can restore it."));
    assert_eq!(answer["undo"], true);
    desk.call("fs_delete", json!({"path": "empty"})).await;
    desk.call("fs_delete", json!({"path": "link", "recursive": true})).await;
    assert!(desk.exists("full/a") && !desk.exists("link") && !desk.exists("empty"));
    let error = desk.fails("fs_delete", json!({"path": "full"})).await;
    assert!(error.hint.unwrap().contains("fs_delete {\"path\": \"full\", \"recursive\": true}"));
    let answer = desk.call("fs_delete", json!({"path": "full", "recursive": true})).await;
    assert_eq!((answer["count"].as_u64().unwrap() >= 3, desk.exists("full")), (true, false));
    assert_eq!(desk.fails("fs_delete", json!({"path": "full"})).await.kind, Kind::NotFound);
    assert_eq!(desk.call("fs_delete", json!({"path": "full", "force": true})).await["removed"], false);
    desk.fails("fs_delete", json!({"path": ".", "recursive": true})).await;
    assert!(desk.exists("."));
}

#[tokio::test]
async fn moving_and_copying_lose_nothing_unasked() {
    for tool in ["fs_move", "fs_copy"] {
        let desk = FilesFixture::new(&[("a", b"a"), ("b", b"b"), ("dir/c", b"c")]);
        let error = desk.fails(tool, json!({"source": "a", "destination": "b"})).await;
        assert_eq!(error.kind, Kind::Conflict, "{tool}");
        assert!(error.hint.unwrap().contains("set overwrite to true"));
        let error = desk.fails(tool, json!({"source": "a", "destination": "dir", "overwrite": true})).await;
        assert!(error.hint.as_deref().unwrap().contains("\"dir/a\""), "{error}");
        let answer = desk.call(tool, json!({"source": "a", "destination": "b", "overwrite": true})).await;
        let warning = answer["warning"].as_str().unwrap();
        assert!(warning.starts_with("Replaced `b`, which had 1 bytes."), "{tool}: {warning}");
        if tool == "fs_copy" {
            desk.call("fs_undo", json!({"path": "b"})).await;
            assert_eq!(desk.text("b"), "b");
            desk.call(tool, json!({"source": "a", "destination": "b", "overwrite": true})).await;
        }
        assert_eq!((desk.text("b").as_str(), desk.exists("a")), ("a", tool == "fs_copy"));
        let answer = desk.call(tool, json!({"source": "dir", "destination": "other"})).await;
        assert_eq!((answer.get("warning"), desk.text("other/c").as_str()), (None, "c"), "{tool}");
        assert_eq!(
            desk.fails(tool, json!({"source": "missing", "destination": "x"})).await.kind,
            Kind::NotFound
        );
        desk.fails(tool, json!({"source": "other", "destination": "other/inner"})).await;
        let error = desk.fails(tool, json!({"source": "b", "destination": "no/where/b"})).await;
        assert_eq!(error.message, "The directory `no/where` does not exist.", "{tool}");
        assert!(error.hint.unwrap().contains("fs_mkdir {\"path\": \"no/where\"}"));
        let error = desk.fails(tool, json!({"source": "other", "destination": "b", "overwrite": true})).await;
        assert_eq!(error.kind, Kind::Conflict, "{error}");
    }
}

#[tokio::test]
async fn a_move_can_be_undone_by_either_name() {
    for by in ["old", "new"] {
        let desk = FilesFixture::new(&[("old", b"moved"), ("new", b"replaced"), ("folder/x", b"x")]);
        let answer =
            desk.call("fs_move", json!({"source": "old", "destination": "new", "overwrite": true})).await;
        assert_eq!(answer["undo"], true, "{answer}");
        assert!(answer["warning"].as_str().unwrap().ends_with("fs_undo can restore it."), "{answer}");
        assert_eq!(desk.call("fs_undo", json!({"path": by})).await["undone"], true, "{by}");
        assert_eq!((desk.text("old").as_str(), desk.text("new").as_str()), ("moved", "replaced"), "{by}");
        desk.call("fs_move", json!({"source": "folder", "destination": "other"})).await;
        assert_eq!(desk.call("fs_undo", json!({"path": "other"})).await["removed"], true);
        assert_eq!((desk.text("folder/x").as_str(), desk.exists("other")), ("x", false));
    }
}
