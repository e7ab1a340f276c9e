//! What the fuzz targets call. Not part of the interface.

use crate::Scenario;
use crate::scenario::Settings;
use crate::tap::request::Request;

/// A scenario: any text gives a lab or one line that says what is wrong.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(error) = Scenario::parse(text, "fuzz") {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

/// A control message: any line gives a request or one line that says what is wrong. What can be asked can be written.
pub fn control(data: &[u8]) {
    match Request::parse(data) {
        Err(error) => assert_eq!(error.lines().count(), 1, "{error}"),
        Ok(request) => {
            let again = serde_json::to_vec(&request).expect("can be written");
            assert_eq!(Request::parse(&again).as_ref(), Ok(&request));
        }
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        if let Err(error) = Settings::from_words(&words) {
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
