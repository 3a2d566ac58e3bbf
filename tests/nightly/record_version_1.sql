-- A record of version 1, as gpupif wrote it before records had documents: see test_record_version_1.py.
CREATE TABLE changes (run INTEGER NOT NULL, place INTEGER NOT NULL, kind, path, new_path, PRIMARY KEY (run, place)) WITHOUT ROWID;
INSERT INTO "changes" VALUES(2,0,'added','part-0.parquet',NULL);
INSERT INTO "changes" VALUES(2,1,'removed','x',NULL);
INSERT INTO "changes" VALUES(2,2,'read','part-0.parquet',NULL);
INSERT INTO "changes" VALUES(2,3,'renamed','b',X'61EDB3BF2E637376');
CREATE TABLE columns (run INTEGER NOT NULL, place INTEGER NOT NULL, name, type, distinct_values, missing, new_values, PRIMARY KEY (run, place)) WITHOUT ROWID;
INSERT INTO "columns" VALUES(2,0,'age','int64',5,1,NULL);
INSERT INTO "columns" VALUES(2,1,'note','string',NULL,NULL,NULL);
INSERT INTO "columns" VALUES(3,0,'age','int64',5,1,NULL);
INSERT INTO "columns" VALUES(3,1,'note','string',NULL,NULL,NULL);
CREATE TABLE file_versions (
    version INTEGER PRIMARY KEY, path, size, mtime_ns, digest, rows, UNIQUE (path, size, mtime_ns, digest, rows)
);
INSERT INTO "file_versions" VALUES(1,'part-0.parquet',10,20,'d0',30);
INSERT INTO "file_versions" VALUES(2,X'61EDB3BF2E637376',11,21,'d1',31);
CREATE TABLE gates (run INTEGER NOT NULL, place INTEGER NOT NULL, name, kind, unit, value, value_before, verdict, why, column_name, attacker, definition, PRIMARY KEY (run, place)) WITHOUT ROWID;
INSERT INTO "gates" VALUES(2,0,'PIF 95','pif','bits',2.5,NULL,'passed','',NULL,'neighbour','def0');
INSERT INTO "gates" VALUES(3,0,'PIF 95','pif','bits',2.5,NULL,'passed','',NULL,'neighbour','def0');
INSERT INTO "gates" VALUES(3,1,'emd','emd','',9e999,'NaN','failed','The value is infinite.','illness',NULL,'def1');
INSERT INTO "gates" VALUES(3,2,'rows','rows','rows',900,1000,'unknown','',NULL,NULL,'');
CREATE TABLE kept_files (run INTEGER NOT NULL, place INTEGER NOT NULL, name, size, digest, PRIMARY KEY (run, place)) WITHOUT ROWID;
INSERT INTO "kept_files" VALUES(2,0,'scores.parquet',12,'d2');
INSERT INTO "kept_files" VALUES(2,1,'manifest.json',3,'d3');
CREATE TABLE limits (run INTEGER NOT NULL, place INTEGER NOT NULL, gate, name, value, PRIMARY KEY (run, place)) WITHOUT ROWID;
INSERT INTO "limits" VALUES(2,0,0,'max',3.0);
INSERT INTO "limits" VALUES(2,1,0,'max_rise',0.1);
INSERT INTO "limits" VALUES(3,0,0,'max',3.0);
INSERT INTO "limits" VALUES(3,1,0,'max_rise',0.1);
INSERT INTO "limits" VALUES(3,2,1,'max',9e999);
INSERT INTO "limits" VALUES(3,3,2,'min',100);
CREATE TABLE notes (run INTEGER NOT NULL, place INTEGER NOT NULL, note, PRIMARY KEY (run, place)) WITHOUT ROWID;
INSERT INTO "notes" VALUES(2,0,'first');
INSERT INTO "notes" VALUES(2,1,'second');
INSERT INTO "notes" VALUES(3,0,'first');
INSERT INTO "notes" VALUES(3,1,'second');
CREATE TABLE run_files (
    run INTEGER NOT NULL, place INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (run, place)
) WITHOUT ROWID;
INSERT INTO "run_files" VALUES(2,0,1);
INSERT INTO "run_files" VALUES(2,1,2);
INSERT INTO "run_files" VALUES(3,0,1);
CREATE TABLE runs (number INTEGER PRIMARY KEY AUTOINCREMENT, status TEXT NOT NULL, started TEXT NOT NULL, finished TEXT, identity TEXT NOT NULL, config_digest TEXT NOT NULL, host TEXT NOT NULL, device TEXT NOT NULL, rows INTEGER, distinct_rows INTEGER, peak_bytes INTEGER, compared_with INTEGER, unchanged INTEGER, error TEXT NOT NULL, kept_path TEXT, kept_kind TEXT, config TEXT, summary TEXT, risk TEXT, removed TEXT, digest TEXT);
INSERT INTO "runs" VALUES(1,'passed','2026-03-01T02:00:00.000+00:00','2026-03-01T02:00:00.000+00:00','people/*.parquet','c0ffee','','',7,NULL,NULL,NULL,NULL,'',NULL,NULL,NULL,NULL,NULL,'2026-04-01T00:00:00.000+00:00','0105378f18a7347c12e99b6505bb49ab10472159ee12b43875b9e840c4980be6');
INSERT INTO "runs" VALUES(2,'passed','2026-03-01T02:00:00.000+00:00','2026-03-01T02:00:00.000+00:00','people/*.parquet','c0ffee','h','cpu',61,60,123,1,3,'','scores/run-000002','cells','{"input": {"path": "people/*.parquet"}}','{"pif": {"95": 2.5}}','{"classes": {"k": 1}}',NULL,'dbba16eb2af513798462aa71999605da160c3e4c95a0b2ce14e026c9c101325d');
INSERT INTO "runs" VALUES(3,'failed','2026-03-01T02:00:00.000+00:00','2026-03-01T02:00:00.000+00:00','people/*.parquet','c0ffee','h','cpu',61,60,123,1,NULL,'',NULL,NULL,'{"input": {"path": "people/*.parquet"}}','{"pif": {"95": 2.5}}','{"classes": {"k": 1}}',NULL,'8673c3f777783b6e9f582c6d13e5656ac3185431ccd4d880035c5fe666107a1d');
INSERT INTO "runs" VALUES(4,'refused','2026-03-01T02:00:00.000+00:00','2026-03-01T02:00:00.000+00:00','people/*.parquet','c0ffee','','',NULL,NULL,NULL,NULL,NULL,X'61EDB3BF2E6373763A206E6F20737563682066696C65',NULL,NULL,'{"input": {"path": "people/*.parquet"}}',NULL,NULL,NULL,'6468085fac338ff3790aef8bf11d46a74d29394699ef8c8d159b26f711190dab');
INSERT INTO "runs" VALUES(5,'running','2026-03-01T02:00:00.000+00:00',NULL,'people/*.parquet','c0ffee','','',NULL,NULL,NULL,NULL,NULL,'',NULL,NULL,'{"input": {"path": "people/*.parquet"}}',NULL,NULL,NULL,'0f3c1b29e39769fcba70ffe7aef85748359fe743c61dfaf6034402711f63ebe3');
CREATE TABLE stages (run INTEGER NOT NULL, place INTEGER NOT NULL, stage, seconds, PRIMARY KEY (run, place)) WITHOUT ROWID;
INSERT INTO "stages" VALUES(2,0,'read',0.1);
INSERT INTO "stages" VALUES(2,1,'measure',2.0);
CREATE TABLE versions (run INTEGER NOT NULL, place INTEGER NOT NULL, package, version, PRIMARY KEY (run, place)) WITHOUT ROWID;
INSERT INTO "versions" VALUES(2,0,'gpupif','1.0');
INSERT INTO "versions" VALUES(2,1,'python','3.12');
INSERT INTO "versions" VALUES(3,0,'gpupif','1.0');
INSERT INTO "versions" VALUES(3,1,'python','3.12');
CREATE VIEW files AS
    SELECT run, place, path, size, mtime_ns, digest, rows FROM run_files JOIN file_versions USING (version);
CREATE TRIGGER insert_file INSTEAD OF INSERT ON files BEGIN
    INSERT OR IGNORE INTO file_versions (path, size, mtime_ns, digest, rows)
        VALUES (NEW.path, NEW.size, NEW.mtime_ns, NEW.digest, NEW.rows);
    INSERT INTO run_files SELECT NEW.run, NEW.place, version FROM file_versions
        WHERE (path, size, mtime_ns, digest, rows) = (NEW.path, NEW.size, NEW.mtime_ns, NEW.digest, NEW.rows);
END;
CREATE TRIGGER delete_file INSTEAD OF DELETE ON files BEGIN
    DELETE FROM run_files WHERE run = OLD.run AND place = OLD.place;
END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('runs',5);
PRAGMA application_id = 1885955694;
PRAGMA user_version = 1;
