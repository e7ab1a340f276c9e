QOSTOPIC(sensor_msgs::CompressedImage, "camera/image", 0, "1", 10, 150, 600, 4)
QOSTOPIC(audio_common_msgs::AudioData, "/audio", 1, "0", 60, 20, 200, 10); // plays out evenly
