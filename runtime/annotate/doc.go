// Package annotate draws detections on pictures and writes them: a picture as JPEG or PNG, the
// pictures of a clip as an MP4 with the clip's own times, through ffmpeg as a child process.
//
// It knows nothing of models or results: labels come as text. Its font has the Latin
// letters; others show as a question mark.
package annotate
